/*
 * Real work for a real library: reads a text, stores its lines and words in an SQLite database in
 * memory, and asks it questions. Prints the same whether it runs natively or in a domain.
 *
 * usage: index_text FILE
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sqlite3.h"

static sqlite3 *database;

static void check(int status, const char *what)
{
    if (status != SQLITE_OK && status != SQLITE_DONE && status != SQLITE_ROW) {
        fprintf(stderr, "index_text: %s: %s\n", what, sqlite3_errmsg(database));
        exit(1);
    }
}

static void run(const char *sql)
{
    check(sqlite3_exec(database, sql, NULL, NULL, NULL), sql);
}

static sqlite3_stmt *prepare(const char *sql)
{
    sqlite3_stmt *statement;
    check(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), sql);
    return statement;
}

static void add_words(sqlite3_stmt *insert, const char *line, int number)
{
    char word[64];
    size_t length = 0;

    for (const char *p = line;; p++) {
        if (isalpha((unsigned char)*p) || *p == '_') {
            if (length < sizeof word - 1)
                word[length++] = (char)tolower((unsigned char)*p);
            continue;
        }
        if (length > 2) {
            check(sqlite3_bind_text(insert, 1, word, (int)length, SQLITE_TRANSIENT), "bind");
            check(sqlite3_bind_int(insert, 2, number), "bind");
            check(sqlite3_step(insert), "insert");
            check(sqlite3_reset(insert), "reset");
        }
        length = 0;
        if (*p == '\0')
            return;
    }
}

static int read_lines(FILE *file)
{
    static char line[1 << 16];
    sqlite3_stmt *insert = prepare("INSERT INTO words VALUES (?1, ?2)");
    int number = 0;

    run("BEGIN");
    while (fgets(line, sizeof line, file))
        add_words(insert, line, ++number);
    run("COMMIT");
    check(sqlite3_finalize(insert), "finalize");
    return number;
}

static void ask(const char *title, const char *sql)
{
    sqlite3_stmt *query = prepare(sql);
    int columns = sqlite3_column_count(query);

    printf("%s\n", title);
    while (sqlite3_step(query) == SQLITE_ROW) {
        for (int i = 0; i < columns; i++)
            printf("  %-12s", (const char *)sqlite3_column_text(query, i));
        putchar('\n');
    }
    check(sqlite3_finalize(query), "finalize");
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fputs("usage: index_text FILE\n", stderr);
        return 2;
    }
    FILE *file = fopen(argv[1], "r");
    if (file == NULL) {
        perror(argv[1]);
        return 1;
    }
    check(sqlite3_open(":memory:", &database), "open");
    run("CREATE TABLE words (word TEXT, line INTEGER)");
    printf("SQLite %s read %d lines\n", sqlite3_libversion(), read_lines(file));
    run("CREATE INDEX by_word ON words (word, line)");
    ask("the most frequent words",
        "SELECT word, count(*) AS n FROM words GROUP BY word ORDER BY n DESC, word LIMIT 5");
    ask("words that stand on most different lines, of those with ten letters or more",
        "SELECT word, count(DISTINCT line) AS n FROM words WHERE length(word) >= 10"
        " GROUP BY word ORDER BY n DESC, word LIMIT 5");
    ask("how many pairs of lines share the word 'mutex'",
        "SELECT count(*) FROM words a JOIN words b ON a.word = b.word AND a.line < b.line"
        " WHERE a.word = 'mutex'");
    ask("how many words in all, and how many different ones",
        "SELECT count(*), count(DISTINCT word) FROM words");
    check(sqlite3_close(database), "close");
    return fclose(file) == 0 ? 0 : 1;
}
