#!/usr/bin/env perl
# A worker for a queue: worker.pl SOCKET USER DATABASE.TABLE COMMAND…
#
# Runs COMMAND for each row, its columns as further arguments. The row is gone when COMMAND succeeded, and
# given back when it failed. SIGTERM ends it after the job in hand. The password is taken from MYSQL_PWD.
# Needs Debian's libdbd-mariadb-perl.
use strict;
use warnings;
use DBI;
use POSIX qw(SIGTERM);

my ($socket, $user, $queue, @command) = @ARGV;
my $table = join '.', map { "`$_`" } split /\./, $queue, 2;
my ($idle, $stopping, $pause) = (1, 0, 1);

# At once, and not when the wait returns. The connection ends, and the wait; a row that came in this moment
# goes back.
POSIX::sigaction(SIGTERM, POSIX::SigAction->new(sub { POSIX::_exit(0) if $idle; $stopping = 1; }));

sub ask {
    my ($db, $sql, @values) = @_;
    return $db->selectrow_array($sql, undef, @values);
}

sub work {
    my ($db) = @_;
    while (!$stopping) {
        $idle = 1;
        my ($answer) = ask($db, 'SELECT queue_wait(?, 60)', $queue);
        $idle = 0;
        if (!defined $answer) { print STDERR "there is no queue $queue\n"; POSIX::_exit(1) }
        next if $answer == 0;
        my @row = map { $_ // '' } ask($db, "SELECT * FROM $table");
        if (system(@command, @row) == 0) {
            ask($db, 'SELECT queue_end()');
            $pause = 1;
        } else {
            ask($db, 'SELECT queue_abort()');
            print STDERR "$queue: failed, and given back: @row\n";
            sleep $pause;
            $pause = $pause * 2 < 60 ? $pause * 2 : 60;
        }
    }
}

while (!$stopping) {
    eval {
        my $source = "DBI:MariaDB:mariadb_socket=$socket";
        my %how = (RaiseError => 1, PrintError => 0, AutoCommit => 1);
        work(DBI->connect($source, $user, $ENV{MYSQL_PWD} // '', \%how));
        1;
    } or do {
        print STDERR "$queue: $@";
        $idle = 1;
        sleep 1 if !$stopping;
    };
}
