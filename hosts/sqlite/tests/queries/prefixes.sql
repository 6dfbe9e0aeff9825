SELECT * FROM prefixes('abcdef');
SELECT prefix_length('abcdef','abcxyz'), prefix_length('','a');
