CREATE TABLE t(a); INSERT INTO t VALUES('alpha'),('beta'),('gamma 42'),('delta'),('ümlaut'),(NULL);
SELECT a FROM t WHERE a REGEXP '^[a-d]+l?' ORDER BY a;
SELECT a REGEXP '\d{2}$', regexpi('ALPHA', a), 'a' REGEXP '(' FROM t LIMIT 1;
SELECT a, a REGEXP '\d{2}$', regexpi('ALPHA', a) FROM t;
