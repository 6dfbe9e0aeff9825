SELECT ieee754(2.0), ieee754(45.25), ieee754_mantissa(0.1), ieee754_exponent(0.1), ieee754(1,-3), ieee754('x');
SELECT hex(ieee754_to_blob(3.25)), ieee754_from_blob(x'400a000000000000');
