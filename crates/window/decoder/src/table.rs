//! The allow-list: what no row lets through is rejected.
//!
//! A row is a map (mandatory prefix and escape bytes), opcodes, operands,
//! options, and the instructions that it stands for. The operand notation
//! follows the opcode maps of the manuals:
//!
//! | letter | operand | | letter | operand |
//! | --- | --- | --- | --- | --- |
//! | `E` | r/m: general register or memory | | `G` | reg: general register |
//! | `R` | r/m: general register only | | `V` | reg: vector register |
//! | `W` | r/m: vector register or memory | | `B` | VEX.vvvv: general register |
//! | `U` | r/m: vector register only | | `H` | VEX.vvvv: vector register |
//! | `M` | r/m: memory only | | `Z` | general register in the opcode |
//! | `N` | r/m: not accessed | | `A` | the accumulator |
//! | `I` | immediate | | `J` | branch displacement |
//!
//! Then a size: `b` 8 bits; `v` 16, 32 or 64 (prefix 66, W); `y` 32 or 64 (W); `d` 32 when a general register is
//! written; for immediates `b`, `z` (32, or 16 with prefix 66) and `v`. Then what happens to the operand:
//! nothing said, it is read; `=` written; `+` read and written; `!` perhaps written. With `!` zero extension is
//! not sure, so nothing may rely on the upper half.
//!
//! Options: `/n` accepted values of the reg field; `reg`, `mem`, `rm0` forms; `w0 w1 l0 l1`, `rexb0`, bits of
//! REX or VEX; `lock`, `rep`, `op16` accepted prefixes. `=ax` and so on, general registers written besides;
//! `lazy`, the access may not happen; `is:x` a meaning that the checker knows ([`crate::row::Kind`]); `x87`,
//! `mxcsr` for the statistics.
//!
//! The tests decode every opcode of every row, in register and memory form,
//! with iced-x86, and compare length, operands, accesses and names.

use crate::row::{InstructionGroup, Text};

const fn t(
    map: &'static str,
    opcodes: &'static str,
    operands: &'static str,
    options: &'static str,
    names: &'static str,
) -> Text {
    Text {
        map,
        opcodes,
        operands,
        options,
        names,
    }
}

/// The allow-list.
pub const GROUPS: &[InstructionGroup] = &[
    InstructionGroup {
        class: "moves and integer arithmetic",
        reason: "operands are explicit: registers and at most one memory operand, all checked",
        rows: INTEGER,
    },
    InstructionGroup {
        class: "bits",
        reason: "as arithmetic; a bit index in a register reaches memory far from the operand, so it goes with registers only",
        rows: BITS,
    },
    InstructionGroup {
        class: "control",
        reason: "targets are checked; what faults never continues; fences and identification touch no memory",
        rows: CONTROL,
    },
    InstructionGroup {
        class: "strings",
        reason: "go upwards from a checked pointer and stop at the guard",
        rows: STRINGS,
    },
    InstructionGroup {
        class: "x87",
        reason: "at most one explicit memory operand of at most 28 bytes; the runtime resets x87 state at gates",
        rows: X87,
    },
    InstructionGroup {
        class: "SSE to SSE4.2, AES, PCLMULQDQ, SHA",
        reason: "explicit operands only; `maskmovdqu`, whose memory operand is implicit, is not here",
        rows: SSE,
    },
    InstructionGroup {
        class: "AVX, AVX2, FMA, F16C, BMI",
        reason: "as SSE; gathers, whose addresses are vectors, are not here",
        rows: AVX,
    },
];

#[rustfmt::skip]
const INTEGER: &[Text] = &[
    t("", "00 08 10 18 20 28 30", "Eb+ Gb", "lock", "add or adc sbb and sub xor"),
    t("", "01", "Ev+ Gv", "lock is:add-to", "add"),
    t("", "09 11 19 21 29 31", "Ev+ Gv", "lock", "or adc sbb and sub xor"),
    t("", "02 0a 12 1a 22 2a 32", "Gb+ Eb", "", "add or adc sbb and sub xor"),
    t("", "03", "Gv+ Ev", "is:add-from", "add"),
    t("", "0b 13 1b 23 2b 33", "Gv+ Ev", "", "or adc sbb and sub xor"),
    t("", "04 0c 14 1c 24 2c 34", "Ab+ Ib", "", "add or adc sbb and sub xor"),
    t("", "05 0d 15 1d 25 2d 35", "Av+ Iz", "", "add or adc sbb and sub xor"),
    t("", "38 84", "Eb Gb", "", "cmp test"),
    t("", "39 85", "Ev Gv", "", "cmp test"),
    t("", "3a", "Gb Eb", "", "cmp"),
    t("", "3b", "Gv Ev", "", "cmp"),
    t("", "3c a8", "Ab Ib", "", "cmp test"),
    t("", "3d a9", "Av Iz", "", "cmp test"),
    t("", "63", "Gy= Ed", "w1", "movsxd"),
    t("", "69", "Gv= Ev Iz", "", "imul"),
    t("", "6b", "Gv= Ev Ib", "", "imul"),
    t("", "80", "Eb+ Ib", "/0 /1 /2 /3 /4 /5 /6 lock", "add or adc sbb and sub xor"),
    t("", "80", "Eb Ib", "/7", "cmp"),
    t("", "81", "Ev+ Iz", "/0 /1 /2 /3 /4 /5 /6 lock is:arithmetic", "add or adc sbb and sub xor"),
    t("", "81", "Ev Iz", "/7", "cmp"),
    t("", "83", "Ev+ Ib", "/0 /1 /2 /3 /4 /5 /6 lock is:arithmetic", "add or adc sbb and sub xor"),
    t("", "83", "Ev Ib", "/7", "cmp"),
    t("", "86", "Eb! Gb!", "lock", "xchg"),
    t("", "87", "Ev! Gv!", "lock", "xchg"),
    t("", "88", "Eb= Gb", "", "mov"),
    t("", "89", "Ev= Gv", "is:move", "mov"),
    t("", "8a", "Gb= Eb", "", "mov"),
    t("", "8b", "Gv= Ev", "is:move", "mov"),
    t("", "8d", "Gv= N", "mem is:lea", "lea"),
    // With REX.B it is an exchange with %r8.
    t("", "90", "", "op16 rep rexb0", "nop pause"),
    t("", "91-97", "Zv!", "=ax", "xchg"),
    t("", "98", "", "op16 =ax", "cbw cwde cdqe"),
    t("", "99", "", "op16 =dx", "cwd cdq cqo"),
    t("", "9b", "", "x87", "wait"),
    t("", "9e", "", "", "sahf"),
    t("", "9f", "", "=ax", "lahf"),
    t("", "b0-b7", "Zb= Ib", "", "mov"),
    t("", "b8-bf", "Zv= Iv", "is:move-immediate", "mov"),
    t("", "c6", "Eb= Ib", "/0", "mov"),
    t("", "c7", "Ev= Iz", "/0", "mov"),
    t("", "f6", "Eb Ib", "/0", "test"),
    t("", "f6", "Eb+", "/2 /3 lock", "not neg"),
    t("", "f6", "Eb", "/4 /5 /6 /7 =ax", "mul imul div idiv"),
    t("", "f7", "Ev Iz", "/0", "test"),
    t("", "f7", "Ev+", "/2 /3 lock", "not neg"),
    t("", "f7", "Ev", "/4 /5 /6 /7 =ax =dx", "mul imul div idiv"),
    t("", "fe", "Eb+", "/0 /1 lock", "inc dec"),
    t("", "ff", "Ev+", "/0 /1 lock", "inc dec"),
    t("0f", "40-4f", "Gv= Ev", "",
      "cmovo cmovno cmovb cmovae cmove cmovne cmovbe cmova cmovs cmovns cmovp cmovnp cmovl cmovge cmovle cmovg"),
    t("0f", "90-9f", "Eb=", "/0 /1 /2 /3 /4 /5 /6 /7",
      "seto setno setb setae sete setne setbe seta sets setns setp setnp setl setge setle setg"),
    t("0f", "af", "Gv+ Ev", "", "imul"),
    t("0f", "b0", "Eb! Gb", "lock =ax", "cmpxchg"),
    t("0f", "b1", "Ev! Gv", "lock =ax", "cmpxchg"),
    t("0f", "b6 be", "Gv= Eb", "", "movzx movsx"),
    t("0f", "b7 bf", "Gv= Ed", "", "movzx movsx"),
    t("0f", "c0", "Eb! Gb!", "lock", "xadd"),
    t("0f", "c1", "Ev! Gv!", "lock", "xadd"),
    t("0f", "c3", "My= Gy", "weak", "movnti"),
    t("0f", "c7", "My+", "/1 lock =ax =dx", "cmpxchg8b cmpxchg16b"),
    t("0f", "c8-cf", "Zy+", "", "bswap"),
    t("0f38", "f0", "Gv= M", "", "movbe"),
    t("0f38", "f1", "Mv= Gv", "", "movbe"),
    t("66 0f38", "f6", "Gy+ Ey", "", "adcx"),
    t("f3 0f38", "f6", "Gy+ Ey", "", "adox"),
    t("f2 0f38", "f0", "Gy+ Eb", "", "crc32"),
    t("f2 0f38", "f1", "Gy+ Ev", "", "crc32"),
];

#[rustfmt::skip]
const BITS: &[Text] = &[
    t("", "c0", "Eb! Ib", "/0 /1 /2 /3 /4 /5 /7", "rol ror rcl rcr shl shr sar"),
    t("", "c1", "Ev+ Ib", "/0 /1 /2 /3 /4 /5 /7 is:shift", "rol ror rcl rcr shl shr sar"),
    t("", "d0", "Eb+", "/0 /1 /2 /3 /4 /5 /7", "rol ror rcl rcr shl shr sar"),
    t("", "d1", "Ev+", "/0 /1 /2 /3 /4 /5 /7", "rol ror rcl rcr shl shr sar"),
    t("", "d2", "Eb!", "/0 /1 /2 /3 /4 /5 /7", "rol ror rcl rcr shl shr sar"),
    t("", "d3", "Ev!", "/0 /1 /2 /3 /4 /5 /7", "rol ror rcl rcr shl shr sar"),
    t("0f", "a3", "Ev Gv", "reg", "bt"),
    t("0f", "ab b3 bb", "Ev! Gv", "reg", "bts btr btc"),
    t("0f", "a4 ac", "Ev! Gv Ib", "", "shld shrd"),
    t("0f", "a5 ad", "Ev! Gv", "", "shld shrd"),
    t("0f", "ba", "Ev Ib", "/4", "bt"),
    t("0f", "ba", "Ev! Ib", "/5 /6 /7 lock", "bts btr btc"),
    t("0f", "bc bd", "Gv! Ev", "", "bsf bsr"),
    t("f3 0f", "b8", "Gv= Ev", "", "popcnt"),
    // Older processors read these as `bsf` and `bsr`, which may leave the register alone.
    t("f3 0f", "bc bd", "Gv! Ev", "", "tzcnt lzcnt"),
];

#[rustfmt::skip]
const CONTROL: &[Text] = &[
    t("", "70-7f", "Jb", "is:conditional", "jo jno jb jae je jne jbe ja js jns jp jnp jl jge jle jg"),
    t("0f", "80-8f", "Jz", "is:conditional", "jo jno jb jae je jne jbe ja js jns jp jnp jl jge jle jg"),
    t("", "c3", "", "is:return", "ret"),
    t("", "cc", "", "is:breakpoint", "int3"),
    t("", "e8", "Jz", "is:call", "call"),
    t("", "e9", "Jz", "is:jump", "jmp"),
    t("", "eb", "Jb", "is:jump", "jmp"),
    t("", "f5 f8 f9 fc", "", "", "cmc clc stc cld"),
    t("", "ff", "R", "/2 /4 is:indirect", "call jmp"),
    t("0f", "01", "", "reg /2 rm0 =ax =dx", "xgetbv"),
    t("0f", "0b", "", "is:stop", "ud2"),
    t("0f", "0d", "M", "/0 /1 lazy", "prefetch prefetchw"),
    t("0f", "18", "M", "/0 /1 /2 /3 lazy", "prefetchnta prefetcht0 prefetcht1 prefetcht2"),
    t("f3 0f", "1e", "", "reg /7 rm2", "endbr64"),
    t("0f", "1f", "Nv", "/0 is:nop", "nop"),
    t("0f", "a2", "", "=ax =bx =cx =dx", "cpuid"),
    t("0f", "ae", "M", "/2 mxcsr", "ldmxcsr"),
    t("0f", "ae", "M=", "/3 mxcsr", "stmxcsr"),
    t("0f", "ae", "", "reg /5 /6 /7 rm0", "lfence mfence sfence"),
    t("0f", "b9", "Gd Rd", "is:stop", "ud1"),
];

#[rustfmt::skip]
const STRINGS: &[Text] = &[
    t("", "a4 a5", "", "op16 rep is:movs =si =di =cx", "movsb movsw movsd movsq"),
    t("", "a6 a7", "", "op16 rep is:cmps =si =di =cx", "cmpsb cmpsw cmpsd cmpsq"),
    t("", "aa ab", "", "op16 rep is:stos =di =cx", "stosb stosw stosd stosq"),
    t("", "ac ad", "", "op16 rep is:lods =si =ax =cx", "lodsb lodsw lodsd lodsq"),
    t("", "ae af", "", "op16 rep is:scas =di =cx", "scasb scasw scasd scasq"),
];

#[rustfmt::skip]
const X87: &[Text] = &[
    t("", "d8 da dc de", "M", "/0 /1 /2 /3 /4 /5 /6 /7 x87",
      "fadd fmul fcom fcomp fsub fsubr fdiv fdivr fiadd fimul ficom ficomp fisub fisubr fidiv fidivr"),
    t("", "d9", "M", "/0 /4 /5 x87", "fld fldenv fldcw"),
    t("", "d9", "M=", "/2 /3 /6 /7 x87", "fst fstp fnstenv fnstcw"),
    t("", "db", "M", "/0 /5 x87", "fild fld"),
    t("", "db", "M=", "/1 /2 /3 /7 x87", "fisttp fist fistp fstp"),
    t("", "dd", "M", "/0 x87", "fld"),
    t("", "dd", "M=", "/1 /2 /3 /7 x87", "fisttp fst fstp fnstsw"),
    t("", "df", "M", "/0 /5 x87", "fild"),
    t("", "df", "M=", "/1 /2 /3 /7 x87", "fisttp fist fistp"),
    t("", "df", "", "reg /4 rm0 =ax x87", "fnstsw"),
    t("", "d8-df", "", "reg /0 /1 /2 /3 /4 /5 /6 /7 is:x87 x87",
      "fadd fmul fcom fcomp fsub fsubr fdiv fdivr fld fxch fnop fchs fabs ftst fxam fld1 fldl2t fldl2e fldpi \
       fldlg2 fldln2 fldz f2xm1 fyl2x fptan fpatan fxtract fprem1 fdecstp fincstp fprem fyl2xp1 fsqrt fsincos \
       frndint fscale fsin fcos fcmovb fcmove fcmovbe fcmovu fucompp fcmovnb fcmovne fcmovnbe fcmovnu fnclex \
       fninit fucomi fcomi ffree fst fstp fucom fucomp faddp fmulp fcompp fsubrp fsubp fdivrp fdivp fucomip \
       fcomip"),
];

#[rustfmt::skip]
const SSE: &[Text] = &[
    // No prefix: packed single.
    t("0f", "10 28", "V= W", "", "movups movaps"),
    t("0f", "11 29", "W= V", "", "movups movaps"),
    t("0f", "12 16", "V+ W", "", "movlps movhlps movhps movlhps"),
    t("0f", "13 17", "M= V", "", "movlps movhps"),
    t("0f", "2b", "M= V", "weak", "movntps"),
    t("0f", "14 15 51-5f", "V+ W", "",
      "unpcklps unpckhps sqrtps rsqrtps rcpps andps andnps orps xorps addps mulps cvtps2pd cvtdq2ps subps \
       minps divps maxps"),
    t("0f", "2e 2f", "V W", "", "ucomiss comiss"),
    t("0f", "50", "Gd= U", "", "movmskps"),
    t("0f", "c2 c6", "V+ W Ib", "", "cmpps shufps"),
    t("0f38", "c8-cd", "V+ W", "", "sha1nexte sha1msg1 sha1msg2 sha256rnds2 sha256msg1 sha256msg2"),
    t("0f3a", "cc", "V+ W Ib", "", "sha1rnds4"),
    // 66: packed double and integers.
    t("66 0f", "10 28 6f", "V= W", "", "movupd movapd movdqa"),
    t("66 0f", "11 29 7f d6", "W= V", "", "movupd movapd movdqa movq"),
    t("66 0f", "12 16", "V+ M", "", "movlpd movhpd"),
    t("66 0f", "13 17", "M= V", "", "movlpd movhpd"),
    t("66 0f", "2b e7", "M= V", "weak", "movntpd movntdq"),
    t("66 0f", "14 15 51 54-5f 60-6d 74-76 7c 7d d0-d5 d8-df e0-e6 e8-ef f1-f6 f8-fe", "V+ W", "",
      "unpcklpd unpckhpd sqrtpd andpd andnpd orpd xorpd addpd mulpd cvtpd2ps cvtps2dq subpd minpd divpd maxpd \
       punpcklbw punpcklwd punpckldq packsswb pcmpgtb pcmpgtw pcmpgtd packuswb punpckhbw punpckhwd punpckhdq \
       packssdw punpcklqdq punpckhqdq pcmpeqb pcmpeqw pcmpeqd haddpd hsubpd addsubpd psrlw psrld psrlq paddq \
       pmullw psubusb psubusw pminub pand paddusb paddusw pmaxub pandn pavgb psraw psrad pavgw pmulhuw pmulhw \
       cvttpd2dq psubsb psubsw pminsw por paddsb paddsw pmaxsw pxor psllw pslld psllq pmuludq pmaddwd psadbw \
       psubb psubw psubd psubq paddb paddw paddd"),
    t("66 0f", "2e 2f", "V W", "", "ucomisd comisd"),
    t("66 0f", "50 d7", "Gd= U", "", "movmskpd pmovmskb"),
    t("66 0f", "6e", "V= Ey", "", "movd movq"),
    t("66 0f", "7e", "Ey= V", "", "movd movq"),
    t("66 0f", "70 c2 c6", "V+ W Ib", "", "pshufd cmppd shufpd"),
    t("66 0f", "71 72", "U Ib", "/2 /4 /6", "psrlw psraw psllw psrld psrad pslld"),
    t("66 0f", "73", "U Ib", "/2 /3 /6 /7", "psrlq psrldq psllq pslldq"),
    t("66 0f", "c4", "V+ Ed Ib", "", "pinsrw"),
    t("66 0f", "c5", "Gd= U Ib", "", "pextrw"),
    t("66 0f38", "00-0b 10 14 15 1c-1e 20-25 28 29 2b 30-35 37-41 db-df", "V+ W", "",
      "pshufb phaddw phaddd phaddsw pmaddubsw phsubw phsubd phsubsw psignb psignw psignd pmulhrsw pblendvb \
       blendvps blendvpd pabsb pabsw pabsd pmovsxbw pmovsxbd pmovsxbq pmovsxwd pmovsxwq pmovsxdq pmuldq \
       pcmpeqq packusdw pmovzxbw pmovzxbd pmovzxbq pmovzxwd pmovzxwq pmovzxdq pcmpgtq pminsb pminsd pminuw \
       pminud pmaxsb pmaxsd pmaxuw pmaxud pmulld phminposuw aesimc aesenc aesenclast aesdec aesdeclast"),
    t("66 0f38", "17", "V W", "", "ptest"),
    t("66 0f38", "2a", "V= M", "", "movntdqa"),
    t("66 0f3a", "08-0f 21 40-42 44 df", "V+ W Ib", "",
      "roundps roundpd roundss roundsd blendps blendpd pblendw palignr insertps dpps dppd mpsadbw pclmulqdq \
       aeskeygenassist"),
    t("66 0f3a", "14 15 17", "Ed= V Ib", "", "pextrb pextrw extractps"),
    t("66 0f3a", "16", "Ey= V Ib", "", "pextrd pextrq"),
    t("66 0f3a", "20", "V+ Ed Ib", "", "pinsrb"),
    t("66 0f3a", "22", "V+ Ey Ib", "", "pinsrd pinsrq"),
    t("66 0f3a", "60-63", "V W Ib", "=cx", "pcmpestrm pcmpestri pcmpistrm pcmpistri pcmpestrm64 pcmpestri64"),
    // F3: scalar single.
    t("f3 0f", "10 12 16 51-53 58-5f 6f 7e e6", "V+ W", "",
      "movss movsldup movshdup sqrtss rsqrtss rcpss addss mulss cvtss2sd cvttps2dq subss minss divss maxss \
       movdqu movq cvtdq2pd"),
    t("f3 0f", "11 7f", "W= V", "", "movss movdqu"),
    t("f3 0f", "2a", "V+ Ey", "", "cvtsi2ss"),
    t("f3 0f", "2c 2d", "Gy= W", "", "cvttss2si cvtss2si"),
    t("f3 0f", "70 c2", "V+ W Ib", "", "pshufhw cmpss"),
    // F2: scalar double.
    t("f2 0f", "10 12 51 58-5a 5c-5f 7c 7d d0 e6", "V+ W", "",
      "movsd movddup sqrtsd addsd mulsd cvtsd2ss subsd minsd divsd maxsd haddps hsubps addsubps cvtpd2dq"),
    t("f2 0f", "11", "W= V", "", "movsd"),
    t("f2 0f", "2a", "V+ Ey", "", "cvtsi2sd"),
    t("f2 0f", "2c 2d", "Gy= W", "", "cvttsd2si cvtsd2si"),
    t("f2 0f", "70 c2", "V+ W Ib", "", "pshuflw cmpsd"),
    t("f2 0f", "f0", "V= M", "", "lddqu"),
];

#[rustfmt::skip]
const AVX: &[Text] = &[
    t("vex 0f", "10 28 51-53 5a 5b", "V= W", "", "vmovups vmovaps vsqrtps vrsqrtps vrcpps vcvtps2pd vcvtdq2ps"),
    t("vex 0f", "11 29", "W= V", "", "vmovups vmovaps"),
    t("vex 0f", "12 16", "V= H W", "l0", "vmovlps vmovhlps vmovhps vmovlhps"),
    t("vex 0f", "13 17", "M= V", "l0", "vmovlps vmovhps"),
    t("vex 0f", "2b", "M= V", "weak", "vmovntps"),
    t("vex 0f", "14 15 54-59 5c-5f", "V= H W", "",
      "vunpcklps vunpckhps vandps vandnps vorps vxorps vaddps vmulps vsubps vminps vdivps vmaxps"),
    t("vex 0f", "2e 2f", "V W", "", "vucomiss vcomiss"),
    t("vex 0f", "50", "Gd= U", "", "vmovmskps"),
    t("vex 0f", "77", "", "", "vzeroupper vzeroall"),
    t("vex 0f", "ae", "M", "/2 l0 mxcsr", "vldmxcsr"),
    t("vex 0f", "ae", "M=", "/3 l0 mxcsr", "vstmxcsr"),
    t("vex 0f", "c2 c6", "V= H W Ib", "", "vcmpps vshufps"),
    t("vex 66 0f", "10 28 51 5a 5b 6f e6", "V= W", "",
      "vmovupd vmovapd vsqrtpd vcvtpd2ps vcvtps2dq vmovdqa vcvttpd2dq"),
    t("vex 66 0f", "11 29 7f", "W= V", "", "vmovupd vmovapd vmovdqa"),
    t("vex 66 0f", "12 16", "V= H M", "l0", "vmovlpd vmovhpd"),
    t("vex 66 0f", "13 17", "M= V", "l0", "vmovlpd vmovhpd"),
    t("vex 66 0f", "2b e7", "M= V", "weak", "vmovntpd vmovntdq"),
    t("vex 66 0f", "14 15 54-59 5c-5f 60-6d 74-76 7c 7d d0-d5 d8-df e0-e5 e8-ef f1-f6 f8-fe", "V= H W", "",
      "vunpcklpd vunpckhpd vandpd vandnpd vorpd vxorpd vaddpd vmulpd vsubpd vminpd vdivpd vmaxpd vpunpcklbw \
       vpunpcklwd vpunpckldq vpacksswb vpcmpgtb vpcmpgtw vpcmpgtd vpackuswb vpunpckhbw vpunpckhwd vpunpckhdq \
       vpackssdw vpunpcklqdq vpunpckhqdq vpcmpeqb vpcmpeqw vpcmpeqd vhaddpd vhsubpd vaddsubpd vpsrlw vpsrld \
       vpsrlq vpaddq vpmullw vpsubusb vpsubusw vpminub vpand vpaddusb vpaddusw vpmaxub vpandn vpavgb vpsraw \
       vpsrad vpavgw vpmulhuw vpmulhw vpsubsb vpsubsw vpminsw vpor vpaddsb vpaddsw vpmaxsw vpxor vpsllw vpslld \
       vpsllq vpmuludq vpmaddwd vpsadbw vpsubb vpsubw vpsubd vpsubq vpaddb vpaddw vpaddd"),
    t("vex 66 0f", "2e 2f", "V W", "", "vucomisd vcomisd"),
    t("vex 66 0f", "50 d7", "Gd= U", "", "vmovmskpd vpmovmskb"),
    t("vex 66 0f", "6e", "V= Ey", "l0", "vmovd vmovq"),
    t("vex 66 0f", "7e", "Ey= V", "l0", "vmovd vmovq"),
    t("vex 66 0f", "70", "V= W Ib", "", "vpshufd"),
    t("vex 66 0f", "71 72", "H U Ib", "/2 /4 /6", "vpsrlw vpsraw vpsllw vpsrld vpsrad vpslld"),
    t("vex 66 0f", "73", "H U Ib", "/2 /3 /6 /7", "vpsrlq vpsrldq vpsllq vpslldq"),
    t("vex 66 0f", "c2 c6", "V= H W Ib", "", "vcmppd vshufpd"),
    t("vex 66 0f", "c4", "V= H Ed Ib", "l0", "vpinsrw"),
    t("vex 66 0f", "c5", "Gd= U Ib", "l0", "vpextrw"),
    t("vex 66 0f", "d6", "W= V", "l0", "vmovq"),
    t("vex f3 0f", "10", "V= H U", "", "vmovss"),
    t("vex f3 0f", "10", "V= M", "", "vmovss"),
    t("vex f3 0f", "11", "V H U", "", "vmovss"),
    t("vex f3 0f", "11", "M= V", "", "vmovss"),
    t("vex f3 0f", "12 16 5b 6f e6", "V= W", "", "vmovsldup vmovshdup vcvttps2dq vmovdqu vcvtdq2pd"),
    t("vex f3 0f", "7e", "V= W", "l0", "vmovq"),
    t("vex f3 0f", "7f", "W= V", "", "vmovdqu"),
    t("vex f3 0f", "2a", "V= H Ey", "", "vcvtsi2ss"),
    t("vex f3 0f", "2c 2d", "Gy= W", "", "vcvttss2si vcvtss2si"),
    t("vex f3 0f", "51-53 58-5a 5c-5f", "V= H W", "",
      "vsqrtss vrsqrtss vrcpss vaddss vmulss vcvtss2sd vsubss vminss vdivss vmaxss"),
    t("vex f3 0f", "70", "V= W Ib", "", "vpshufhw"),
    t("vex f3 0f", "c2", "V= H W Ib", "", "vcmpss"),
    t("vex f2 0f", "10", "V= H U", "", "vmovsd"),
    t("vex f2 0f", "10", "V= M", "", "vmovsd"),
    t("vex f2 0f", "11", "V H U", "", "vmovsd"),
    t("vex f2 0f", "11", "M= V", "", "vmovsd"),
    t("vex f2 0f", "12 e6", "V= W", "", "vmovddup vcvtpd2dq"),
    t("vex f2 0f", "2a", "V= H Ey", "", "vcvtsi2sd"),
    t("vex f2 0f", "2c 2d", "Gy= W", "", "vcvttsd2si vcvtsd2si"),
    t("vex f2 0f", "51 58-5a 5c-5f 7c 7d d0", "V= H W", "",
      "vsqrtsd vaddsd vmulsd vcvtsd2ss vsubsd vminsd vdivsd vmaxsd vhaddps vhsubps vaddsubps"),
    t("vex f2 0f", "70", "V= W Ib", "", "vpshuflw"),
    t("vex f2 0f", "c2", "V= H W Ib", "", "vcmpsd"),
    t("vex f2 0f", "f0", "V= M", "", "vlddqu"),
    t("vex 66 0f38", "00-0b 28 29 2b 37-40", "V= H W", "",
      "vpshufb vphaddw vphaddd vphaddsw vpmaddubsw vphsubw vphsubd vphsubsw vpsignb vpsignw vpsignd vpmulhrsw \
       vpmuldq vpcmpeqq vpackusdw vpcmpgtq vpminsb vpminsd vpminuw vpminud vpmaxsb vpmaxsd vpmaxuw vpmaxud \
       vpmulld"),
    t("vex 66 0f38", "0c 0d 46", "V= H W", "w0", "vpermilps vpermilpd vpsravd"),
    t("vex 66 0f38", "16 36", "V= H W", "w0 l1", "vpermps vpermd"),
    t("vex 66 0f38", "45 47", "V= H W", "", "vpsrlvd vpsrlvq vpsllvd vpsllvq"),
    t("vex 66 0f38", "96-9f a6-af b6-bf", "V= H W", "",
      "vfmaddsub132ps vfmaddsub132pd vfmsubadd132ps vfmsubadd132pd vfmadd132ps vfmadd132pd vfmadd132ss \
       vfmadd132sd vfmsub132ps vfmsub132pd vfmsub132ss vfmsub132sd vfnmadd132ps vfnmadd132pd vfnmadd132ss \
       vfnmadd132sd vfnmsub132ps vfnmsub132pd vfnmsub132ss vfnmsub132sd vfmaddsub213ps vfmaddsub213pd \
       vfmsubadd213ps vfmsubadd213pd vfmadd213ps vfmadd213pd vfmadd213ss vfmadd213sd vfmsub213ps vfmsub213pd \
       vfmsub213ss vfmsub213sd vfnmadd213ps vfnmadd213pd vfnmadd213ss vfnmadd213sd vfnmsub213ps vfnmsub213pd \
       vfnmsub213ss vfnmsub213sd vfmaddsub231ps vfmaddsub231pd vfmsubadd231ps vfmsubadd231pd vfmadd231ps \
       vfmadd231pd vfmadd231ss vfmadd231sd vfmsub231ps vfmsub231pd vfmsub231ss vfmsub231sd vfnmadd231ps \
       vfnmadd231pd vfnmadd231ss vfnmadd231sd vfnmsub231ps vfnmsub231pd vfnmsub231ss vfnmsub231sd"),
    t("vex 66 0f38", "dc-df", "V= H W", "l0", "vaesenc vaesenclast vaesdec vaesdeclast"),
    t("vex 66 0f38", "0e 0f", "V W", "w0", "vtestps vtestpd"),
    t("vex 66 0f38", "17", "V W", "", "vptest"),
    t("vex 66 0f38", "13 18 58 59 78 79", "V= W", "w0",
      "vcvtph2ps vbroadcastss vpbroadcastd vpbroadcastq vpbroadcastb vpbroadcastw"),
    t("vex 66 0f38", "19", "V= W", "w0 l1", "vbroadcastsd"),
    t("vex 66 0f38", "1a 5a", "V= M", "w0 l1", "vbroadcastf128 vbroadcasti128"),
    t("vex 66 0f38", "1c-1e 20-25 30-35", "V= W", "",
      "vpabsb vpabsw vpabsd vpmovsxbw vpmovsxbd vpmovsxbq vpmovsxwd vpmovsxwq vpmovsxdq vpmovzxbw vpmovzxbd \
       vpmovzxbq vpmovzxwd vpmovzxwq vpmovzxdq"),
    t("vex 66 0f38", "41 db", "V= W", "l0", "vphminposuw vaesimc"),
    t("vex 66 0f38", "2a", "V= M", "", "vmovntdqa"),
    t("vex 66 0f38", "2c 2d", "V= H M", "w0 lazy", "vmaskmovps vmaskmovpd"),
    t("vex 66 0f38", "2e 2f", "M= H V", "w0 lazy", "vmaskmovps vmaskmovpd"),
    t("vex 66 0f38", "8c", "V= H M", "lazy", "vpmaskmovd vpmaskmovq"),
    t("vex 66 0f38", "8e", "M= H V", "lazy", "vpmaskmovd vpmaskmovq"),
    t("vex 0f38", "f2", "Gy= By Ey", "l0", "andn"),
    t("vex 0f38", "f3", "By= Ey", "/1 /2 /3 l0", "blsr blsmsk blsi"),
    t("vex 0f38", "f5 f7", "Gy= Ey By", "l0", "bzhi bextr"),
    t("vex 66 0f38", "f7", "Gy= Ey By", "l0", "shlx"),
    t("vex f3 0f38", "f7", "Gy= Ey By", "l0", "sarx"),
    t("vex f2 0f38", "f7", "Gy= Ey By", "l0", "shrx"),
    t("vex f3 0f38", "f5", "Gy= By Ey", "l0", "pext"),
    t("vex f2 0f38", "f5", "Gy= By Ey", "l0", "pdep"),
    t("vex f2 0f38", "f6", "Gy= By= Ey", "l0", "mulx"),
    t("vex 66 0f3a", "00 01", "V= W Ib", "w1 l1", "vpermq vpermpd"),
    t("vex 66 0f3a", "02", "V= H W Ib", "w0", "vpblendd"),
    t("vex 66 0f3a", "04 05", "V= W Ib", "w0", "vpermilps vpermilpd"),
    t("vex 66 0f3a", "06 18 38 46", "V= H W Ib", "w0 l1", "vperm2f128 vinsertf128 vinserti128 vperm2i128"),
    t("vex 66 0f3a", "08 09", "V= W Ib", "", "vroundps vroundpd"),
    t("vex 66 0f3a", "0a-0f 40 42", "V= H W Ib", "",
      "vroundss vroundsd vblendps vblendpd vpblendw vpalignr vdpps vmpsadbw"),
    t("vex 66 0f3a", "14 15 17", "Ed= V Ib", "l0", "vpextrb vpextrw vextractps"),
    t("vex 66 0f3a", "16", "Ey= V Ib", "l0", "vpextrd vpextrq"),
    t("vex 66 0f3a", "19 39", "W= V Ib", "w0 l1", "vextractf128 vextracti128"),
    t("vex 66 0f3a", "1d", "W= V Ib", "w0", "vcvtps2ph"),
    t("vex 66 0f3a", "20", "V= H Ed Ib", "l0", "vpinsrb"),
    t("vex 66 0f3a", "22", "V= H Ey Ib", "l0", "vpinsrd vpinsrq"),
    t("vex 66 0f3a", "21 41", "V= H W Ib", "l0", "vinsertps vdppd"),
    t("vex 66 0f3a", "44", "V= H W Ib", "", "vpclmulqdq"),
    t("vex 66 0f3a", "4a-4c", "V= H W Ib", "w0", "vblendvps vblendvpd vpblendvb"),
    t("vex 66 0f3a", "60-63", "V W Ib", "l0 =cx", "vpcmpestrm vpcmpestri vpcmpistrm vpcmpistri vpcmpestrm64 vpcmpestri64"),
    t("vex 66 0f3a", "df", "V= W Ib", "l0", "vaeskeygenassist"),
    t("vex f2 0f3a", "f0", "Gy= Ey Ib", "l0", "rorx"),
];
