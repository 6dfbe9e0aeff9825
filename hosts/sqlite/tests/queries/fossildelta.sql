CREATE TABLE t(a, b);
INSERT INTO t VALUES(printf('%.2000c','x')||'the quick brown fox'||printf('%.500c','y'), printf('%.1990c','x')||'the slow brown fox'||printf('%.510c','y'));
SELECT length(delta_create(a,b)) > 0, delta_apply(a, delta_create(a,b)) = b, delta_output_size(delta_create(a,b)) FROM t;
SELECT op, a1, a2 FROM t, delta_parse(delta_create(a,b));
