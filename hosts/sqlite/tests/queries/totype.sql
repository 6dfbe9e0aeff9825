SELECT tointeger('12'), tointeger('12.5'), tointeger('x'), tointeger(x'0100000000000000'), toreal('1.5e3'), toreal(7), toreal('1.5x');
SELECT tointeger(9223372036854775807), toreal(9223372036854775807);
