/* Files of granted directories. Each line of output is one attempt and what came of it. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TRY(what) do { errno = 0; long r = (long)(what); printf("%s: %s\n", #what, r < 0 ? strerror(errno) : "done"); } while (0)
#define CASE(name) if (!strcmp(which, name))

int main(int count, char **words)
{
    const char *which = count > 1 ? words[1] : "";
    CASE("none") { TRY(open("/etc/passwd", O_RDONLY)); TRY(open(".", O_RDONLY)); TRY(mkdir("/x", 0777)); return 0; }
    CASE("read-only") {
        TRY(open("/d/file", O_RDONLY)); /* 3 */
        TRY(open("/d/file", O_RDONLY | O_TRUNC));
        TRY(open("/d/file", O_WRONLY)); TRY(open("/d/file", O_RDWR)); TRY(open("/d/new", O_RDONLY | O_CREAT, 0666));
        TRY(open("/d", O_TMPFILE | O_RDWR, 0600));
        TRY(truncate("/d/file", 0)); TRY(ftruncate(3, 0)); TRY(write(3, "x", 1)); TRY(chmod("/d/file", 0));
        TRY(utimensat(AT_FDCWD, "/d/file", 0, 0)); TRY(futimens(3, 0)); TRY(unlink("/d/file")); TRY(mkdir("/d/new", 0777));
        TRY(rmdir("/d/sub")); TRY(rename("/d/file", "/w/file")); TRY(rename("/w/mine", "/d/mine")); TRY(access("/d/file", W_OK));
        TRY(fchmod(3, 0)); TRY(link("/d/file", "/w/file")); TRY(symlink("/d", "/w/link"));
        return 0;
    }
    CASE("escape") {
        TRY(open("/d/out", O_RDONLY)); TRY(open("/d/absolute", O_RDONLY)); TRY(open("/d/up/secret", O_RDONLY));
        TRY(open("/d/../secret", O_RDONLY)); TRY(open("/d/sub/../../secret", O_RDONLY)); TRY(open("/secret", O_RDONLY));
        TRY(open("/d/new-by-link", O_WRONLY | O_CREAT, 0666)); TRY(truncate("/d/out", 0)); TRY(chmod("/d/out", 0)); TRY(chdir("/d/up"));
        TRY(openat(open("/d", O_RDONLY), "../secret", O_RDONLY)); TRY(rename("/d/file", "/d/up/stolen")); TRY(rename("/d", "/e"));
        TRY(open("/d/inside", O_RDONLY)); TRY(open("/d/fifo", O_RDONLY)); TRY(open("/d/fifo", O_WRONLY)); TRY(truncate("/d/fifo", 0));
        return 0;
    }
    CASE("root") { /* all of the host's files, at /h: and what the kernel shows is none */
        static struct stat s; static char target[64];
        TRY(open("/h/etc/passwd", O_RDONLY)); TRY(stat("/h/etc", &s));
        TRY(stat("/h/proc/self", &s)); TRY(lstat("/h/proc/self", &s)); TRY(stat("/h/proc/self/exe", &s)); TRY(access("/h/proc/1", F_OK));
        TRY(readlink("/h/proc/self", target, sizeof target)); TRY(readlink("/h/proc/self/exe", target, sizeof target));
        TRY(readlink("/h/proc/self/cwd", target, sizeof target)); TRY(open("/h/proc/self/mem", O_RDONLY)); TRY(open("/h/proc/version", O_RDONLY));
        TRY(open("/h/proc", O_RDONLY)); TRY(open("/h/proc/self/root/etc/passwd", O_RDONLY)); TRY(chdir("/h/proc/self")); TRY(chmod("/h/proc/self/oom_score_adj", 0666));
        TRY(truncate("/h/proc/self/oom_score_adj", 0)); TRY(utimensat(AT_FDCWD, "/h/proc/self/stat", 0, 0)); TRY(mkdir("/h/proc/x", 0777)); TRY(unlink("/h/proc/self/stat"));
        return 0;
    }
    CASE("above") { /* directories above granted ones lead there, and hold nothing else */
        char path[4096]; struct stat s; glob_t found; DIR *all;
        puts(realpath("/srv/one/../one/./d/file", path) ? path : strerror(errno));
        for (const char **name = (const char *[]){"/", "/srv", 0}; *name; name++) {
            printf("%s:", *name); all = opendir(*name);
            for (int twice = 0; twice < 2; twice++, rewinddir(all)) for (struct dirent *e; (e = readdir(all));) printf(" %s", e->d_name);
            printf(" %d %o\n", closedir(all), stat(*name, &s) ? 0 : (unsigned)s.st_mode);
        }
        glob("/*/*/*/fi[l]e", 0, 0, &found); printf("%zu %s\n", found.gl_pathc, found.gl_pathc ? found.gl_pathv[0] : "");
        TRY(chdir("/srv/one")); TRY(open("d/file", O_RDONLY)); TRY(openat(open("/", O_RDONLY | O_DIRECTORY), "srv/one/d/file", O_RDONLY)); TRY(access("/srv", R_OK | X_OK));
        TRY(access("/srv", W_OK)); TRY(mkdir("/srv", 0777)); TRY(mkdir("/srv/new", 0777)); TRY(open("/srv", O_WRONLY)); TRY(open("/srv", O_CREAT | O_EXCL, 0666)); TRY(open("/srv/new", O_WRONLY | O_CREAT, 0666));
        TRY(rmdir("/srv/one")); TRY(rename("/srv", "/w/srv")); TRY(rename("/w/mine", "/srv/mine")); TRY(chmod("/srv", 0)); TRY(symlink("mine", "/srv/link")); TRY(readlink("/srv", path, 9)); TRY(read(open("/srv", O_RDONLY), path, 9)); TRY(stat("/sr", &s)); TRY(chdir("/srv/two"));
        return 0;
    }
    CASE("ways") { /* links to absolute paths, and out of one granted directory into another */
        char text[16] = ""; struct stat s; char path[4096];
        TRY(open("/srv/one/d/way", O_RDONLY)); TRY(read(3, text, 7)); TRY(strcmp(text, "content")); TRY(stat("/srv/one/d/way", &s)); TRY(lstat("/srv/one/d/way", &s)); TRY(open("/srv/one/d/across/mine", O_RDWR));
        TRY(chdir("/srv/one/d/across")); puts(getcwd(path, sizeof path)); puts(realpath("/srv/one/d/across/../d-is-not-here", path) ? path : strerror(errno)); puts(realpath("/srv/one/d/way", path) ? path : strerror(errno));
        TRY(open("/srv/one/d/circle", O_RDONLY)); TRY(open("/srv/one/d/absolute", O_RDONLY)); TRY(open("/srv/one/d/across/new", O_WRONLY | O_CREAT, 0666)); TRY(open("/srv/one/d/way", O_WRONLY | O_CREAT | O_EXCL, 0666)); TRY(chmod("/srv/one/d/way", 0));
        return 0;
    }
    CASE("remove-all") { /* removes while it lists */
        DIR *all = opendir("/w/many"); int n = 0;
        for (struct dirent *e; (e = readdir(all));) if (e->d_name[0] == 'f') { char path[300]; snprintf(path, sizeof path, "/w/many/%s", e->d_name); n += !unlink(path); }
        char room[16]; errno = 0; lseek(dirfd(all), 0, SEEK_SET);
        long r = syscall(SYS_getdents64, dirfd(all), room, sizeof room);
        printf("%d removed, rmdir %d, %ld %s", n, rmdir("/w/many"), r, strerror(errno)); return 0;
    }
    CASE("links") {
        TRY(symlink("/etc/passwd", "/w/a")); TRY(symlink("../secret", "/w/a")); TRY(symlink("x/../../secret", "/w/a")); TRY(symlink("mine", "/w/down"));
        TRY(link("/w/mine", "/w/again")); TRY(link("/w/down", "/w/linked")); TRY(link("/w/mine", "/d/again")); TRY(link("/d/file", "/w/stolen"));
        struct stat s; stat("/w/again", &s); char text[16] = ""; read(open("/w/down", O_RDONLY), text, 15); printf("%d %s\n", (int)s.st_nlink, text); return 0;
    }
    CASE("here") { char here[64]; puts(getcwd(here, sizeof here)); TRY(open("w/mine", O_RDWR)); TRY(open("secret", O_RDONLY)); return 0; }
    CASE("mapped") { /* a copy, which changes nothing */
        int f = open("mine", O_RDONLY); char *text = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE, f, 0);
        if (text == MAP_FAILED || strcmp(text, "content") || text[8191]) return 1;
        text[0] = 'C'; close(f);
        if (mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, open("mine", O_RDWR), 0) != MAP_FAILED || errno != ENODEV) return 2;
        if (mmap(0, 4096, PROT_READ, MAP_SHARED, open("mine", O_RDWR), 0) != MAP_FAILED || errno != ENODEV) return 5;
        if (mmap(0, 4096, PROT_READ, MAP_SHARED, open("mine", O_WRONLY), 0) != MAP_FAILED) return 6;
        if (mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, open("mine", O_RDONLY), 0) != MAP_FAILED) return 7;
        char *same = mmap(0, 4096, PROT_READ, MAP_SHARED, open("mine", O_RDONLY), 0);
        if (same == MAP_FAILED || strcmp(same, "content")) return 8;
        if (mmap(0, 4096, PROT_READ, MAP_PRIVATE, open("mine", O_RDONLY), 1) != MAP_FAILED || errno != EINVAL) return 3;
        char *fixed = mmap(text + 4096, 4096, PROT_READ, MAP_PRIVATE | MAP_FIXED, open("mine", O_RDONLY), 0);
        if (fixed != text + 4096 || strcmp(fixed, "content")) return 4;
        char here[64]; printf("%s %s", text, getcwd(here, sizeof here)); return munmap(text, 8192);
    }
    CASE("owner") { /* nobody gives files away */
        TRY(open("/w/mine", O_RDWR)); TRY(chown("/w/mine", -1, -1)); TRY(fchown(3, -1, -1)); TRY(chown("/w/mine", 7, -1)); TRY(fchown(3, -1, 7));
        TRY(lchown("/w/mine", 7, 7)); TRY(fchownat(AT_FDCWD, "/w/mine", 7, 7, AT_SYMLINK_NOFOLLOW)); TRY(fchownat(3, "", -1, -1, AT_EMPTY_PATH));
        TRY(chown("/w/none", -1, -1)); TRY(chown("/secret", -1, -1)); TRY(fchown(9, -1, -1));
        struct stat s; fstat(3, &s); /* whose it is already */
        TRY(chown("/w/mine", s.st_uid, s.st_gid)); TRY(fchown(3, s.st_uid, -1)); TRY(fchownat(3, "", -1, s.st_gid, AT_EMPTY_PATH));
        TRY(fchown(3, s.st_uid, s.st_gid + 1));
        return 0;
    }
    CASE("appended") {
        int f = open("/w/mine", O_RDWR), also = dup(f); char text[32] = "";
        if (fcntl(f, F_SETFL, O_APPEND) || fcntl(also, F_GETFL) != (O_RDWR | O_APPEND | (fcntl(f, F_GETFL) & ~(O_RDWR | O_APPEND)))) return 1;
        lseek(f, 0, SEEK_SET); write(f, " more", 5); if (fcntl(also, F_SETFL, 0) || lseek(f, 0, SEEK_SET) || write(f, "C", 1) != 1) return 2;
        FILE *end = fdopen(dup(open("/w/mine", O_RDWR)), "a"); fputs(" again", end); fclose(end);
        pread(f, text, 31, 0); printf("%s", text); return 0;
    }
    CASE("reopened") { /* without a name, as glibc does it by a name below /proc */
        char text[32] = ""; FILE *f = fopen("/w/mine", "r+"); fgets(text, 4, f);
        if (!(f = freopen(NULL, "r+", f)) || !fgets(text, 32, f) || fputs("!", f) < 0 || fflush(f)) return 1;
        printf("%s ", text); struct stat s;
        if (!(f = freopen(NULL, "w+", f)) || stat("/w/mine", &s) || s.st_size || ftell(f)) return 2;
        fputs("one", f); if (!(f = freopen(NULL, "a", f)) || fputs("two", f) < 0 || fgetc(f) != EOF) return 3;
        if (!(f = freopen(NULL, "r", f)) || !fgets(text, 32, f) || fputs("three", f) >= 0) return 4;
        fclose(f); f = fopen("/w/mine", "r"); if (freopen(NULL, "w", f) || errno != EBADF) return 5;
        if (!freopen(NULL, "w", stdout)) return 6;
        printf("%s", text); return 0;
    }
    CASE("work") {
        FILE *f = fopen("/w/text", "w"); fputs("one two three", f); fclose(f); f = fopen("/w/text", "r+"); char buffer[32];
        fseek(f, 4, SEEK_SET); if (!fgets(buffer, 4, f)) return 1; fclose(f); struct stat s; stat("/w/text", &s);
        chdir("/w"); rename("text", "moved"); printf("%s %ld %d", buffer, (long)s.st_size, access("moved", R_OK)); return 0;
    }
    return 1;
}
