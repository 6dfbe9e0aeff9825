SELECT decimal_add('1.1','2.22222222222222222222'), decimal_sub('5','7.25'), decimal_mul('1.5','-1e1');
SELECT decimal_cmp('10','9.99'), decimal('  12.500 '), decimal_sum(value) FROM (SELECT '0.1' AS value UNION ALL SELECT '0.2' UNION ALL SELECT '1000000000000000000000.05');
SELECT x FROM (SELECT '10' AS x UNION ALL SELECT '9' UNION ALL SELECT '-3.5') ORDER BY x COLLATE decimal;
