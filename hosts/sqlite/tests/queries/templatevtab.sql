SELECT rowid, * FROM templatevtab;
SELECT sum(a*b) FROM templatevtab;
