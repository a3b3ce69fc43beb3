// What a server does for its clients, seen where it dispatches their commands. It reads arguments of functions, and
// what those point to; no member of THD, whose layout changes between versions. `record.rs` reads what it writes.
//
// Nothing is included: no kernel headers are needed to build it.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(NAME) __attribute__((section(NAME), used))
#define INLINE static inline __attribute__((always_inline))
#define UINT(NAME, VALUE) int(*NAME)[VALUE]
#define TYPE(NAME, VALUE) VALUE *NAME

enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_RINGBUF = 27 };
// Nothing waits for a record: they are fetched many at a time.
enum { NO_WAKEUP = 1 };

static void *(*map_find)(void *map, const void *key) = (void *)1;
static long (*map_put)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*map_remove)(void *map, const void *key) = (void *)3;
static u64 (*clock_ns)(void) = (void *)5;
static u64 (*process_and_thread)(void) = (void *)14;
static long (*read_user)(void *into, u32 size, const void *from) = (void *)112;
static long (*read_text)(void *into, u32 size, const void *from) = (void *)114;
static void *(*reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*submit)(void *data, u64 flags) = (void *)132;

#if defined(__TARGET_x86_64)
struct pt_regs {
    u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
#define ARG1(R) ((R)->di)
#define ARG2(R) ((R)->si)
#define ARG3(R) ((R)->dx)
#define ARG4(R) ((R)->cx)
#define ARG5(R) ((R)->r8)
#define ARG6(R) ((R)->r9)
#define ARG7(R) on_stack((R)->sp, 1)
#define ARG8(R) on_stack((R)->sp, 2)
#define RETURNED(R) ((R)->ax)
#elif defined(__TARGET_aarch64)
struct pt_regs {
    u64 regs[31], sp, pc, pstate;
};
#define ARG1(R) ((R)->regs[0])
#define ARG2(R) ((R)->regs[1])
#define ARG3(R) ((R)->regs[2])
#define ARG4(R) ((R)->regs[3])
#define ARG5(R) ((R)->regs[4])
#define ARG6(R) ((R)->regs[5])
#define ARG7(R) ((R)->regs[6])
#define ARG8(R) ((R)->regs[7])
#define RETURNED(R) ((R)->regs[0])
#else
#error "no registers are known for this processor"
#endif

// Numbers in the protocol. Only of these the contents are read: of a change of user they are secrets.
enum {
    INIT_DB = 2,
    QUERY = 3,
    CONNECT = 11,
    CHANGE_USER = 17,
    PREPARE = 22,
    EXECUTE = 23,
    LONG_DATA = 24,
    CLOSE = 25,
    RESET = 26,
    FETCH = 28,
    BULK_EXECUTE = 250,
};

enum kind { BEGIN = 1, MORE, VALUES, END, LOGIN, NUMBER, PREPARED, LOGGED, SCHEMA, SCHEMA_SET, GONE };

// Of a record: what it should hold could not be read; the parameters have types.
enum { UNREADABLE = 1, NEW_TYPES = 2 };

struct head {
    u64 at;      // monotonic, in nanoseconds
    u64 session; // the THD's address
    u64 length;  // of all of the text
    u64 number;  // depends on the kind
    u64 other;
    u32 thread;
    u32 size; // of what follows
    u8 kind;
    u8 command;
    u16 flags;
    u32 offset; // of this piece in the text
};

enum { SMALL = 256, MEDIUM = 2048, LARGE = 16384, NAME = 256, MOST_PIECES = 64, MOST_PARAMETERS = 128 };

#define RECORD(SIZE)                                                                                                   \
    struct record_##SIZE {                                                                                             \
        struct head head;                                                                                              \
        u8 data[SIZE];                                                                                                 \
    };
RECORD(SMALL)
RECORD(MEDIUM)
RECORD(LARGE)

struct under_way {
    u64 session;
    u64 begun;
    u64 command;
};

struct {
    UINT(type, MAP_RINGBUF);
    UINT(max_entries, 1 << 20);
} ring SEC(".maps");

// Commands that threads work on.
struct {
    UINT(type, MAP_HASH);
    UINT(max_entries, 65536);
    TYPE(key, u64);
    TYPE(value, struct under_way);
} under_way SEC(".maps");

// Commands that wait without a thread, by session: those of MariaDB's pool of threads.
struct {
    UINT(type, MAP_HASH);
    UINT(max_entries, 65536);
    TYPE(key, u64);
    TYPE(value, struct under_way);
} parked SEC(".maps");

// What found no room: commands, and other records.
struct {
    UINT(type, MAP_ARRAY);
    UINT(max_entries, 2);
    TYPE(key, u32);
    TYPE(value, u64);
} lost SEC(".maps");

const volatile u64 text_bytes = 1 << 20;
// Bytes from one of MySQL's parameters to the next; 0 where they come as they were sent.
const volatile u64 parameter_bytes = 0;

INLINE u64 on_stack(u64 sp, u32 place) {
    u64 value = 0;
    read_user(&value, sizeof value, (void *)(sp + 8 * place));
    return value;
}

INLINE void lose(u32 what) {
    u64 *count = map_find(&lost, &what);
    if (count)
        __sync_fetch_and_add(count, 1);
}

#define PUT(SIZE)                                                                                                      \
    do {                                                                                                               \
        struct record_##SIZE *it = reserve(&ring, sizeof *it, 0);                                                      \
        if (!it)                                                                                                       \
            return -1;                                                                                                 \
        it->head = *head;                                                                                              \
        it->head.size = size;                                                                                          \
        if (size > 0 && read_user(it->data, size, from))                                                               \
            it->head.flags |= UNREADABLE;                                                                              \
        submit(it, NO_WAKEUP);                                                                                         \
        return 0;                                                                                                      \
    } while (0)

// Writes a record with at most LARGE bytes of the server's memory.
static __attribute__((noinline)) int put(struct head *head, const void *from, u64 size) {
    if (!head)
        return -1;
    if (size <= SMALL)
        PUT(SMALL);
    if (size <= MEDIUM)
        PUT(MEDIUM);
    if (size > LARGE)
        size = LARGE;
    PUT(LARGE);
}

// Writes a record with a text, in as many pieces as it takes; the first says how long it is.
INLINE int put_text(struct head *head, u64 from, u64 length) {
    u64 size = length > text_bytes ? text_bytes : length;
    head->length = length;
    int failed = put(head, (void *)from, size);
    if (failed)
        return failed;
    if (size > LARGE) {
        head->kind = MORE;
        for (int piece = 1; piece < MOST_PIECES; piece++) {
            from += LARGE;
            size -= LARGE;
            head->offset += LARGE;
            if (put(head, (void *)from, size))
                lose(1);
            if (size <= LARGE)
                break;
        }
    }
    return 0;
}

INLINE void begin(struct head *head, u64 session, u64 command) {
    u64 key = process_and_thread();
    head->at = clock_ns();
    head->session = session;
    head->command = command;
    head->kind = BEGIN;
    head->thread = key;
}

// Takes note that a thread works on a command, so that its end is known as such.
INLINE void note(struct head *head, int failed) {
    if (failed) {
        lose(0);
        return;
    }
    u64 key = process_and_thread();
    struct under_way it = {.session = head->session, .begun = head->at, .command = head->command};
    map_put(&under_way, &key, &it, 0);
}

SEC("uprobe/dispatch_mariadb")
int dispatch_mariadb(struct pt_regs *regs) {
    struct head head = {};
    u8 command = ARG1(regs);
    u64 session = ARG2(regs);
    struct under_way *waits = map_find(&parked, &session);
    if (waits) {
        u64 key = process_and_thread();
        struct under_way it = *waits;
        map_remove(&parked, &session);
        map_put(&under_way, &key, &it, 0);
        return 0;
    }
    begin(&head, session, command);
    u64 length = (u32)ARG4(regs);
    int is_read = command == INIT_DB || command == QUERY || (command >= PREPARE && command <= RESET) ||
                  command == FETCH || command == BULK_EXECUTE;
    note(&head, put_text(&head, is_read ? ARG3(regs) : 0, is_read ? length : 0));
    return 0;
}

// What MySQL passes for a command: plugin/com_data.h.
struct com_data {
    u64 first;
    u64 second;
    u64 third;
    u64 fourth;
    u8 has_new_types;
};

struct parameter {
    u64 null_and_type;
    u64 is_unsigned;
    u64 value;
    u64 length;
};

// Writes MySQL's parameters as they are, then the part of the packet that their values point to.
INLINE int put_parameters(struct head *head, u64 from, u64 count) {
    head->number = count;
    u64 size = count * parameter_bytes;
    int failed = put_text(head, from, size > LARGE ? LARGE : size);
    if (failed || count > MOST_PARAMETERS)
        return failed;
    u64 low = 0, high = 0;
    for (u64 number = 0; number < MOST_PARAMETERS; number++) {
        struct parameter one = {};
        if (number >= count)
            break;
        read_user(&one, sizeof one, (void *)(from + number * parameter_bytes));
        if ((one.null_and_type & 0xff) || !one.value)
            continue;
        if (!low || one.value < low)
            low = one.value;
        if (one.value + one.length > high)
            high = one.value + one.length;
    }
    head->kind = VALUES;
    head->number = low;
    if (put_text(head, low, high - low))
        lose(1);
    return 0;
}

SEC("uprobe/dispatch_mysql")
int dispatch_mysql(struct pt_regs *regs) {
    struct head head = {};
    struct com_data data = {};
    u8 command = ARG3(regs);
    begin(&head, ARG1(regs), command);
    u64 from = 0, length = 0;
    if (command == INIT_DB || command == QUERY || (command >= PREPARE && command <= RESET) || command == FETCH)
        if (read_user(&data, sizeof data, (void *)ARG2(regs)))
            head.flags |= UNREADABLE;
    switch (command) {
    case INIT_DB:
    case QUERY:
    case PREPARE:
        from = data.first;
        length = (u32)data.second;
        break;
    case EXECUTE:
        head.other = data.first;
        if (parameter_bytes) {
            if (data.has_new_types)
                head.flags |= NEW_TYPES;
            note(&head, put_parameters(&head, data.third, data.fourth));
            return 0;
        }
        from = data.third;
        length = data.fourth;
        break;
    case LONG_DATA:
        head.other = data.first;
        head.number = (u32)data.second;
        from = data.third;
        length = data.fourth;
        break;
    case CLOSE:
    case RESET:
    case FETCH:
        head.other = (u32)data.first;
        break;
    }
    note(&head, put_text(&head, from, length));
    return 0;
}

// MariaDB returns this from a command that waits without a thread, and resumes it by dispatching it again.
enum { WOULD_BLOCK = 2 };

INLINE int finish(int is_parked) {
    u64 key = process_and_thread();
    struct under_way *it = map_find(&under_way, &key);
    if (!it)
        return 0;
    struct head head = {.at = clock_ns(), .session = it->session, .number = it->begun, .thread = key, .kind = END};
    head.command = it->command;
    if (is_parked) {
        struct under_way parked_one = *it;
        u64 session = it->session;
        map_put(&parked, &session, &parked_one, 0);
        map_remove(&under_way, &key);
        return 0;
    }
    map_remove(&under_way, &key);
    struct head *record = reserve(&ring, sizeof *record, 0);
    if (!record) {
        lose(1);
        return 0;
    }
    *record = head;
    submit(record, NO_WAKEUP);
    return 0;
}

SEC("uretprobe/dispatched_mariadb")
int dispatched_mariadb(struct pt_regs *regs) {
    return finish((u32)RETURNED(regs) == WOULD_BLOCK);
}

SEC("uretprobe/dispatched_mysql")
int dispatched_mysql(struct pt_regs *regs) {
    return finish(0);
}

INLINE void say(u8 kind, u64 session, u64 number) {
    struct head head = {.at = clock_ns(), .session = session, .number = number, .kind = kind};
    head.thread = process_and_thread();
    struct head *record = reserve(&ring, sizeof *record, 0);
    if (!record) {
        lose(1);
        return;
    }
    *record = head;
    submit(record, NO_WAKEUP);
}

struct login {
    struct head head;
    u8 names[5][NAME]; // how it is written, then what
};

INLINE void log_in(u64 session, u64 command, u64 form, u64 a, u64 b, u64 c, u64 d) {
    if (command != CONNECT && command != CHANGE_USER)
        return;
    struct login *it = reserve(&ring, sizeof *it, 0);
    if (!it) {
        lose(1);
        return;
    }
    struct head head = {.at = clock_ns(), .session = session, .size = sizeof it->names, .kind = LOGIN};
    head.command = command;
    head.thread = process_and_thread();
    it->head = head;
    u64 from[5] = {form, a, b, c, d};
#pragma unroll
    for (int name = 0; name < 5; name++) {
        it->names[name][0] = 0;
        read_text(it->names[name], NAME, (void *)from[name]);
    }
    submit(it, NO_WAKEUP);
}

SEC("uprobe/login_mariadb")
int login_mariadb(struct pt_regs *regs) {
    log_in(ARG1(regs), (u32)ARG2(regs), ARG3(regs), ARG4(regs), ARG5(regs), ARG6(regs), ARG7(regs));
    return 0;
}

SEC("uprobe/login_mysql")
int login_mysql(struct pt_regs *regs) {
    log_in(ARG2(regs), (u32)ARG3(regs), ARG4(regs), ARG5(regs), ARG6(regs), ARG7(regs), ARG8(regs));
    return 0;
}

SEC("uretprobe/numbered_mysql")
int numbered_mysql(struct pt_regs *regs) {
    say(NUMBER, 0, RETURNED(regs));
    return 0;
}

// MariaDB passes it to the constructor. A session that takes over what another one left has none that shows.
SEC("uprobe/numbered_mariadb")
int numbered_mariadb(struct pt_regs *regs) {
    if (ARG2(regs))
        say(NUMBER, 0, ARG2(regs));
    return 0;
}

INLINE int prepared(u64 number) {
    u64 key = process_and_thread();
    struct under_way *it = map_find(&under_way, &key);
    if (it && it->command == PREPARE && number)
        say(PREPARED, it->session, number);
    return 0;
}

SEC("uprobe/prepared_mariadb")
int prepared_mariadb(struct pt_regs *regs) {
    return prepared(ARG5(regs));
}

SEC("uprobe/prepared_mysql")
int prepared_mysql(struct pt_regs *regs) {
    return prepared(ARG2(regs));
}

INLINE int logged(u64 session, u64 command, u64 text, u64 length) {
    if (command != EXECUTE)
        return 0;
    struct head head = {.at = clock_ns(), .session = session, .kind = LOGGED};
    head.thread = process_and_thread();
    if (put_text(&head, text, length))
        lose(1);
    return 0;
}

SEC("uprobe/logged_mariadb")
int logged_mariadb(struct pt_regs *regs) {
    return logged(ARG1(regs), (u32)ARG2(regs), ARG3(regs), ARG4(regs));
}

SEC("uprobe/logged_mysql")
int logged_mysql(struct pt_regs *regs) {
    return logged(ARG2(regs), (u32)ARG3(regs), ARG4(regs), ARG5(regs));
}

SEC("uprobe/schema")
int schema(struct pt_regs *regs) {
    struct {
        u64 text;
        u64 length;
    } name = {};
    if (ARG2(regs))
        read_user(&name, sizeof name, (void *)ARG2(regs));
    struct head head = {.at = clock_ns(), .session = ARG1(regs), .kind = SCHEMA};
    head.thread = process_and_thread();
    if (put_text(&head, name.text, name.text ? (name.length & 1023) : 0))
        lose(1);
    return 0;
}

SEC("uretprobe/schema_set")
int schema_set(struct pt_regs *regs) {
    say(SCHEMA_SET, 0, (u8)RETURNED(regs));
    return 0;
}

SEC("uprobe/gone")
int gone(struct pt_regs *regs) {
    say(GONE, ARG1(regs), 0);
    return 0;
}

// Functions that programs of any licence may call are few; reading a process's memory is none of them.
char licence[] SEC("license") = "Dual MIT/GPL";
