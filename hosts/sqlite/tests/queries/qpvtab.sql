SELECT vn, ix, cn, op, ux, rhs FROM qpvtab(5,6) WHERE a=1 AND b>2 ORDER BY c;
SELECT count(*) FROM qpvtab WHERE a IN (1,2,3);
