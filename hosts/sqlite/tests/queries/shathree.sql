SELECT hex(sha3('abc')), hex(sha3('abc',224)), hex(sha3(x'00',512)), hex(sha3(printf('%.50000c','q'),384));
SELECT sha3('abc', 100);
CREATE TABLE t(a,b); INSERT INTO t VALUES(1,'x'),(2.5,x'0102'),(NULL,'y');
SELECT hex(sha3_query('SELECT * FROM t ORDER BY b'));
