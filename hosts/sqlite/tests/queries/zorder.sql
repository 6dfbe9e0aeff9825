SELECT zorder(3,5,7), unzorder(zorder(3,5,7),3,0), unzorder(zorder(3,5,7),3,2);
SELECT zorder(-1, 5);
