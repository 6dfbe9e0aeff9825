SELECT noop('text'), noop(1.5), noop(x'00ff'), noop_i(3), noop_do(4), noop_nd(5), typeof(noop(NULL));
SELECT multitype_text(12), typeof(multitype_text(12)), multitype_integer('7'), typeof(multitype_real('2.5'));
