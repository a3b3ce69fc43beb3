#!/usr/bin/env php
<?php
// A worker for a queue: worker.php SOCKET USER DATABASE.TABLE COMMAND…
//
// Runs COMMAND for each row, its columns as further arguments. The row is gone when COMMAND succeeded, and
// given back when it failed. SIGTERM ends it after the job in hand. The password is taken from MYSQL_PWD.
// Needs Debian's php-cli and php-mysql.

mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
[, $socket, $user, $queue] = $argv;
$command = array_slice($argv, 4);
$table = implode('.', array_map(fn ($part) => "`$part`", explode('.', $queue, 2)));
$stopping = false;
pcntl_async_signals(true);
pcntl_signal(SIGTERM, function () use (&$stopping) { $stopping = true; }, false);

// Waits for a row without blocking signals. When it is ended the connection ends, and the wait; a row that
// came in this moment goes back.
function wait_for_row(mysqli $db, string $queue, bool &$stopping): bool {
    $db->query("SELECT queue_wait('" . $db->real_escape_string($queue) . "', 60)", MYSQLI_ASYNC);
    while (!$stopping) {
        $ready = $failed = $rejected = [$db];
        if (@mysqli_poll($ready, $failed, $rejected, 3600) > 0) {
            $answer = $db->reap_async_query()->fetch_row()[0];
            if ($answer === null) { fwrite(STDERR, "there is no queue $queue\n"); exit(1); }
            return $answer != 0;
        }
    }
    exit(0);
}

function work(mysqli $db, string $queue, string $table, array $command, bool &$stopping): void {
    for ($pause = 1; !$stopping;) {
        if (!wait_for_row($db, $queue, $stopping)) {
            continue;
        }
        $row = $db->query("SELECT * FROM $table")->fetch_row();
        $code = proc_close(proc_open([...$command, ...array_map('strval', $row)], [], $pipes));
        if ($code === 0) {
            $db->query('SELECT queue_end()');
            $pause = 1;
        } else {
            $db->query('SELECT queue_abort()');
            fwrite(STDERR, "$queue: failed, and given back: " . implode(', ', $row) . "\n");
            sleep($pause);
            $pause = min($pause * 2, 60);
        }
    }
}

while (!$stopping) {
    try {
        work(new mysqli(null, $user, getenv('MYSQL_PWD') ?: '', null, 0, $socket), $queue, $table, $command, $stopping);
    } catch (mysqli_sql_exception $why) {
        fwrite(STDERR, "$queue: {$why->getMessage()}; connecting again\n");
        sleep(1);
    }
}
