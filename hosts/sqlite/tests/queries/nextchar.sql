CREATE TABLE d(w TEXT PRIMARY KEY);
INSERT INTO d VALUES('able'),('above'),('about'),('abyss'),('zoo');
SELECT next_char('ab','d','w'), next_char('abo','d','w'), next_char('q','d','w');
SELECT next_char('ab','nowhere','w');
