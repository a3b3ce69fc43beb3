import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;

/** A client as programs in Java are: java -cp DRIVER:CLASSES Client URL DATABASE. */
public class Client {
    public static void main(String[] args) throws SQLException {
        try (Connection connection = DriverManager.getConnection(args[0])) {
            use(connection, args[1]);
        }
    }

    private static void use(Connection connection, String database) throws SQLException {
        String table = database + ".t";
        try (Statement statement = connection.createStatement()) {
            statement.execute("CREATE DATABASE IF NOT EXISTS " + database);
            statement.execute("CREATE TABLE IF NOT EXISTS " + table
                    + " (a BIGINT PRIMARY KEY AUTO_INCREMENT, b VARBINARY(99), c DATETIME(6), d DECIMAL(20,4), e TEXT)");
        }
        connection.setAutoCommit(false);
        String insert = "INSERT INTO " + table + " (b, c, d, e) VALUES (?, ?, ?, ?)";
        try (PreparedStatement prepared = connection.prepareStatement(insert, Statement.RETURN_GENERATED_KEYS)) {
            for (int n = 0; n < 20; n++) {
                prepared.setBytes(1, ("it's \\ " + n).getBytes(java.nio.charset.StandardCharsets.US_ASCII));
                prepared.setTimestamp(2, Timestamp.valueOf("2024-02-29 23:59:" + (10 + n) + ".123456"));
                prepared.setBigDecimal(3, new java.math.BigDecimal("-1234567890.5"));
                prepared.setString(4, n == 7 ? null : "it's \\ \u20ac ".repeat(n));
                prepared.addBatch();
            }
            prepared.executeBatch();
        }
        connection.commit();
        try (PreparedStatement prepared = connection.prepareStatement("SELECT * FROM " + table + " WHERE a > ?")) {
            for (int n = 0; n < 3; n++) {
                prepared.setInt(1, n);
                try (ResultSet rows = prepared.executeQuery()) {
                    while (rows.next()) {
                        rows.getString(5);
                    }
                }
            }
        }
        try (Statement statement = connection.createStatement()) {
            statement.execute("SELECT nothing");
            throw new IllegalStateException("a wrong statement was right");
        } catch (SQLException expected) {
            connection.rollback();
        }
    }
}
