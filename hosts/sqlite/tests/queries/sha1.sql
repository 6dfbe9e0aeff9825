SELECT sha1('abc'), sha1(''), sha1(x'00'), sha1(NULL), sha1(12.5);
SELECT sha1(printf('%.100000c','z'));
CREATE TABLE t(a,b); INSERT INTO t VALUES(1,'x'),(2.5,x'0102'),(NULL,'y');
SELECT sha1_query('SELECT * FROM t ORDER BY b; SELECT 1');
SELECT sha1_query('SELECT nonsense');
