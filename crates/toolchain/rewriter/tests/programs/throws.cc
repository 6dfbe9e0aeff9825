/* Landing pads, some of them at the start of a cold part: compiled, not run here. */
struct whole {
    ~whole();
    int value;
};
int may_throw(int);
int other(int) noexcept;
[[gnu::cold]] void report(const char *);

int nested(int n) {
    whole a{n};
    try {
        whole b{may_throw(n)};
        if (n > 3)
            throw n;
        return b.value + may_throw(n + 1);
    } catch (int &caught) {
        report("int");
        return caught;
    } catch (...) {
        report("something");
        throw;
    }
}

int many(int n, int a, int b, int c, int d, int e, int f, int g) {
    whole w{n};
    int sum = 0;
    for (int i = 0; i < n; i++) {
        try {
            switch (may_throw(i)) {
            case 0: sum += a; break;
            case 1: sum += b; break;
            case 2: sum += other(c); break;
            case 3: sum += d; break;
            case 4: sum += e * 2; break;
            case 5: sum += f; break;
            case 6: throw g;
            default: return sum;
            }
        } catch (long) {
            sum--;
        }
    }
    return sum;
}
