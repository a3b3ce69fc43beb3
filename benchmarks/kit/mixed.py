"""Four tables of an OLTP benchmark's narrow rows and one of many types: what dumps and loads are measured on."""

NARROW = 1_000_000
WIDE = 4_000_000
STEP = 100_000
# Rows of one shape, and every type that matters, in the schema `b`.
TABLES = [*(f"b.narrow{number}" for number in range(4)), "b.wide"]


def fill(server, scale):
    """Makes the schema: at scale 1 a million rows in each narrow table and four millions in the wide one,
    which is 1.8 GB as tab-separated text."""
    server.sql("CREATE DATABASE b")
    rows = max(int(NARROW * scale), 1000)
    for name in TABLES[:4]:
        server.sql(f"CREATE TABLE {name} (id INT PRIMARY KEY AUTO_INCREMENT, k INT NOT NULL, "
                   "c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY (k))")
        digits = "LPAD(FLOOR(RAND(seq * {}) * 1e11), 11, '0')"
        text = ", '-', ".join(digits.format(at) for at in range(1, 10))
        in_steps(server, rows, f"INSERT INTO {name} SELECT seq, FLOOR(RAND(seq) * {rows}), CONCAT({text}), "
                               f"LEFT(CONCAT({text}), 59)")
    server.sql("CREATE TABLE b.wide (id BIGINT PRIMARY KEY, name VARCHAR(80), price DECIMAL(12,2), "
               "at DATETIME(3), data BLOB, doc JSON, note VARCHAR(200), KEY (name), KEY (at))")
    in_steps(server, max(int(WIDE * scale), 1000),
             "INSERT INTO b.wide SELECT seq, CONCAT('name of ', MD5(seq)), RAND(seq) * 1e6, "
             "'2020-01-01' + INTERVAL seq SECOND, IF(seq % 3, UNHEX(SHA2(seq, 512)), NULL), "
             "JSON_OBJECT('id', seq, 'tags', MD5(seq + 1)), "
             "IF(seq % 5, REPEAT(\"it's a note\\t\", seq % 7), NULL)")
    server.sql(f"ANALYZE TABLE {', '.join(TABLES)}")


def in_steps(server, rows, statement):
    for first in range(1, rows + 1, STEP):
        server.sql(f"{statement} FROM b.seq_{first}_to_{min(first + STEP - 1, rows)}")


def checksum(server):
    return server.sql(f"CHECKSUM TABLE {', '.join(TABLES)}")
