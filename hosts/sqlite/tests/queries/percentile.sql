CREATE TABLE t(x); WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c WHERE x<1000) INSERT INTO t SELECT (x*7919)%1009 FROM c;
SELECT percentile(x,50), percentile(x,99), percentile(x,0) FROM t;
SELECT x%3, percentile(x, 25) FROM t GROUP BY 1 ORDER BY 1;
SELECT percentile(x, 101) FROM t;
SELECT percentile(x, 50) FROM t WHERE x<0;
