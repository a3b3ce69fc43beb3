// A client as programs in Go are: a pool of connections, statements with parameters prepared by the driver
// or written into the text.
//
//	client ADDRESS USER PASSWORD
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql"
)

func main() {
	address, user, password := os.Args[1], os.Args[2], os.Args[3]
	for _, options := range []string{"", "interpolateParams=true", "multiStatements=true&parseTime=true"} {
		name := fmt.Sprintf("%s:%s@tcp(%s)/?charset=utf8mb4&%s", user, password, address, options)
		database, err := sql.Open("mysql", name)
		check(err)
		database.SetMaxOpenConns(2)
		use(database)
		check(database.Close())
	}
}

func use(database *sql.DB) {
	all := context.Background()
	one, err := database.Conn(all)
	check(err)
	defer one.Close()
	run := func(text string, values ...any) {
		_, err := one.ExecContext(all, text, values...)
		check(err)
	}
	run("CREATE DATABASE IF NOT EXISTS go")
	run("CREATE TABLE IF NOT EXISTS go.t (a BIGINT UNSIGNED, b LONGBLOB, c DATETIME(6), d DOUBLE, e VARCHAR(99))")
	for n := 0; n < 20; n++ {
		when := time.Date(2024, 2, 29, 23, 59, n, 123456000, time.UTC)
		run("INSERT INTO go.t VALUES (?, ?, ?, ?, ?)", uint64(1)<<63+uint64(n), []byte("it's \\ "), when,
			float64(n)/8, strings.Repeat("'é\\", n))
	}
	run("INSERT INTO go.t VALUES (?, ?, ?, ?, ?)", 1, nil, nil, nil, nil)
	begun, err := one.BeginTx(all, nil)
	check(err)
	prepared, err := begun.Prepare("UPDATE go.t SET d = d + ? WHERE a > ?")
	check(err)
	for n := 0; n < 5; n++ {
		_, err := prepared.Exec(n, n)
		check(err)
	}
	check(prepared.Close())
	check(begun.Rollback())
	rows, err := one.QueryContext(all, "SELECT a, b, c, d, e FROM go.t WHERE a > ? ORDER BY a", 0)
	check(err)
	for rows.Next() {
	}
	check(rows.Err())
	check(rows.Close())
	if _, err := one.ExecContext(all, "SELECT nothing"); err == nil {
		log.Fatal("a wrong statement was right")
	}
	check(one.PingContext(all))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
