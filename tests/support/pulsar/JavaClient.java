import java.util.Base64;
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

/** What tests need of Pulsar's own Java client. Janino compiles it; see java_client.py. */
public final class JavaClient {
    public static void main(String[] arguments) throws Exception {
        ClientBuilder builder = new ClientBuilderImpl(); // Janino calls no static methods of interfaces
        builder.serviceUrl(arguments[1]).enableTransaction("transactions".equals(arguments[0]));
        PulsarClient client = builder.build();
        if ("read".equals(arguments[0])) {
            read(client, arguments[2], "compacted".equals(arguments[3]));
        } else {
            for (int at = 3; at < arguments.length; at++) {
                transaction(client, arguments[2], arguments[at]);
            }
        }
        client.close();
        System.out.flush();
        Runtime.getRuntime().halt(0);
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
