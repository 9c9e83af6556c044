import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.ClientBuilder;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.MessageIdAdv;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.ReaderBuilder;
import org.apache.pulsar.client.api.TypedMessageBuilder;
import org.apache.pulsar.client.api.transaction.Transaction;
import org.apache.pulsar.client.impl.ClientBuilderImpl;

/**
 * What tests need of Pulsar's own Java client. Janino compiles it; see java_client.py.
 *
 * Each line of stdin is one request, its parts apart by tabs; a line with a point ends its answer.
 */
public final class JavaClient {
    static final Map CLIENTS = new HashMap();

    public static void main(String[] ignored) throws Exception {
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in));
        String line = requests.readLine();
        while (line != null) {
            answer(line.split("\t"));
            System.out.println(".");
            System.out.flush();
            line = requests.readLine();
        }
        Runtime.getRuntime().halt(0);
    }

    /** What it throws ends the program. */
    static void answer(String[] arguments) throws Exception {
        PulsarClient client = client(arguments[1], "transactions".equals(arguments[0]));
        if ("read".equals(arguments[0])) {
            read(client, arguments[2], "compacted".equals(arguments[3]));
        } else {
            for (int at = 3; at < arguments.length; at++) {
                transaction(client, arguments[2], arguments[at]);
            }
        }
    }

    /** One for each server: to close one takes two seconds, in which Netty waits for nothing. */
    static PulsarClient client(String url, boolean transactions) throws Exception {
        PulsarClient client = (PulsarClient) CLIENTS.get(url + transactions);
        if (client == null) {
            ClientBuilder builder = new ClientBuilderImpl(); // Janino calls no static methods of interfaces
            client = builder.serviceUrl(url).enableTransaction(transactions).build();
            CLIENTS.put(url + transactions, client);
        }
        return client;
    }

    /** A line for each message: ledger, entry, batch index, key, payload; the last two in Base64, `-` for no key. */
    static void read(PulsarClient client, String topic, boolean compacted) throws Exception {
        ReaderBuilder builder = client.newReader();
        Reader reader = builder.topic(topic).readCompacted(compacted).startMessageId(MessageId.earliest).create();
        Base64.Encoder encoder = Base64.getEncoder();
        while (reader.hasMessageAvailable()) {
            Message message = reader.readNext(60, TimeUnit.SECONDS);
            MessageIdAdv id = (MessageIdAdv) message.getMessageId();
            String key = message.hasKey() ? encoder.encodeToString(message.getKeyBytes()) : "-";
            System.out.println(id.getLedgerId() + " " + id.getEntryId() + " " + id.getBatchIndex() + " " + key + " ="
                    + encoder.encodeToString(message.getData()));
        }
        reader.close();
    }

    /** `commit:a,b`, `abort:a,b`, or `open:a`: one transaction with these values. */
    static void transaction(PulsarClient client, String topic, String what) throws Exception {
        ProducerBuilder builder = client.newProducer();
        Producer producer = builder.topic(topic).enableBatching(false).sendTimeout(0, TimeUnit.SECONDS).create();
        CompletableFuture begun = client.newTransaction().withTransactionTimeout(10, TimeUnit.MINUTES).build();
        Transaction transaction = (Transaction) begun.get();
        String[] values = what.substring(what.indexOf(':') + 1).split(",");
        for (int at = 0; at < values.length; at++) {
            TypedMessageBuilder message = producer.newMessage(transaction);
            message.key("k");
            message.value(values[at].getBytes());
            message.send();
        }
        if (what.startsWith("commit")) {
            transaction.commit().get();
        } else if (what.startsWith("abort")) {
            transaction.abort().get();
        }
        producer.close();
    }
}
