SELECT value FROM generate_series(1,10,3);
SELECT value FROM generate_series(10,1,-4);
SELECT sum(value), count(*) FROM generate_series(1,20000);
SELECT value, start, stop, step FROM generate_series WHERE start=5 AND stop=9 AND step=2 ORDER BY value DESC;
SELECT a.value*b.value FROM generate_series(1,3) a, generate_series(1,3) b LIMIT 5 OFFSET 2;
