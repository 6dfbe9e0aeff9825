CREATE TABLE rules(ruleset, cFrom, cTo, cost);
INSERT INTO rules VALUES(0,'a','e',10),(0,'e','a',12),(0,'','x',40),(0,'ll','l',15);
CREATE VIRTUAL TABLE f USING fuzzer(rules);
SELECT word, distance FROM f WHERE word MATCH 'hallo' AND distance<50 ORDER BY distance, word LIMIT 20;
