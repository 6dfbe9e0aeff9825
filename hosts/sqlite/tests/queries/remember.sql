SELECT remember(7, NULL), remember('x', 5);
