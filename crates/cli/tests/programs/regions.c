/* OpenMP with one thread. */
#include <omp.h>
#include <stdio.h>
static int fib(int n) { int a, b; if (n < 2) return n;
#pragma omp task shared(a)
 a = fib(n - 1);
#pragma omp task shared(b)
 b = fib(n - 2);
#pragma omp taskwait
 return a + b; }
int main(void)
{
    long sum = 0; double product = 1; int count = 0, list[64];
    omp_lock_t lock; omp_nest_lock_t nested;
    omp_init_lock(&lock); omp_init_nest_lock(&nested);
#pragma omp parallel for reduction(+:sum)
    for (int i = 0; i < 1000; i++) sum += i;
#pragma omp parallel for schedule(dynamic, 3) reduction(*:product)
    for (int i = 20; i > 0; i -= 2) product *= i;
#pragma omp parallel for schedule(guided)
    for (unsigned long long i = 0; i < 64; i++) list[i] = i * i;
#pragma omp parallel for schedule(runtime) ordered
    for (int i = 0; i < 4; i++) {
#pragma omp ordered
        printf("ordered %d\n", i);
    }
#pragma omp parallel
    {
#pragma omp for schedule(static, 2) nowait
        for (int i = 0; i < 10; i++) {
#pragma omp atomic
            count += i;
        }
#pragma omp sections
        {
#pragma omp section
            printf("first\n");
#pragma omp section
            printf("second\n");
        }
#pragma omp single
        count++;
#pragma omp barrier
#pragma omp critical (name)
        count++;
#pragma omp master
        printf("%d of %d\n", omp_get_thread_num(), omp_get_num_threads());
    }
#pragma omp parallel sections
    {
#pragma omp section
        printf("third\n");
#pragma omp section
        printf("fourth\n");
    }
    int f;
#pragma omp parallel
#pragma omp single
    f = fib(12);
#pragma omp parallel
#pragma omp single
#pragma omp taskloop
    for (int i = 0; i < 5; i++) list[i] += 100;
    omp_set_lock(&lock); printf("lock %d", omp_test_lock(&lock)); omp_unset_lock(&lock);
    omp_set_nest_lock(&nested); printf(" %d\n", omp_test_nest_lock(&nested));
#pragma omp simd reduction(+:sum)
    for (int i = 0; i < 64; i++) sum += list[i];
    printf("%ld %g %d %d\n", sum, product, count, f);
    return 0;
}
