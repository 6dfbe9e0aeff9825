CREATE TABLE t(id INTEGER PRIMARY KEY, p INTEGER);
WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<400) INSERT INTO t SELECT x, x/3 FROM c;
CREATE INDEX i ON t(p);
CREATE VIRTUAL TABLE cl USING transitive_closure(tablename='t', idcolumn='id', parentcolumn='p');
SELECT count(*), max(depth) FROM cl WHERE root=1;
SELECT id, depth FROM cl WHERE root=7 AND depth<=2 ORDER BY depth, id;
CREATE VIRTUAL TABLE bad USING transitive_closure(nonsense=1);
