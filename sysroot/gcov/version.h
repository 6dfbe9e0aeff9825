/* The version of the files, as gcc 10 and later count it: B22* of 12.2. */
#define GCOV_VERSION \
	((gcov_unsigned_t) (('A' + __GNUC__ / 10) << 24 | ('0' + __GNUC__ % 10) << 16 | ('0' + __GNUC_MINOR__) << 8 | '*'))
