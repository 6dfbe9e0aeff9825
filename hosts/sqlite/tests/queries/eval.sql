CREATE TABLE t(a); INSERT INTO t VALUES(1),(2),(3);
SELECT eval('SELECT a*a FROM t'), eval('SELECT a FROM t',','), eval('nonsense');
SELECT eval('SELECT 1; SELECT 2');
