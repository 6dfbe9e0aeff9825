SELECT rot13('Hello, World'), rot13(''), rot13(NULL), rot13(1234);
SELECT length(rot13(printf('%.200000c','a'))), substr(rot13(printf('%.200000c','a')), 199990);
SELECT 'abc' = 'nop' COLLATE rot13, 'abc' < 'zzz' COLLATE rot13;
