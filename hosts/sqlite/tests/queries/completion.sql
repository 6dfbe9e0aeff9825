SELECT candidate FROM completion('SEL');
SELECT count(*) > 100 FROM completion('','');
