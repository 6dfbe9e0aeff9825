CREATE TABLE cost(iLang, cFrom TEXT, cTo TEXT, Cost INTEGER);
INSERT INTO cost VALUES(0,'','?',100),(0,'?','',110),(0,'?','?',150),(0,'a','e',40),(0,'m','mm',45);
CREATE TABLE vocab(w TEXT UNIQUE);
INSERT INTO vocab VALUES('hamer'),('hammer'),('home'),('hummer'),('apple');
CREATE VIRTUAL TABLE am USING approximate_match(vocabulary_table=vocab, vocabulary_word=w, edit_distances=cost);
SELECT word, distance FROM am WHERE word MATCH 'hamer' AND distance<=300 ORDER BY distance, word;
SELECT word FROM am WHERE word MATCH 'aple' AND distance<=200;
