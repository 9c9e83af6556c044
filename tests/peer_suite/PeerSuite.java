import java.lang.reflect.Field;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import net.bytebuddy.agent.ByteBuddyAgent;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.modifier.Visibility;
import net.bytebuddy.implementation.MethodDelegation;
import net.bytebuddy.implementation.StubMethod;
import net.bytebuddy.implementation.bind.annotation.Argument;
import net.bytebuddy.implementation.bind.annotation.RuntimeType;
import net.bytebuddy.implementation.bind.annotation.This;
import net.bytebuddy.matcher.ElementMatchers;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.PulsarMockBookKeeper;
import org.apache.bookkeeper.conf.ClientConfiguration;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.testcontext.PulsarTestContext;
import org.apache.pulsar.metadata.api.MetadataStoreConfig;
import org.apache.pulsar.metadata.api.extended.MetadataStoreExtended;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.awaitility.Awaitility;
import org.mockito.Mockito;
import org.testng.ITestListener;
import org.testng.ITestResult;
import org.testng.TestNG;
import org.testng.xml.XmlClass;
import org.testng.xml.XmlInclude;
import org.testng.xml.XmlSuite;
import org.testng.xml.XmlTest;

/**
 * Runs Pulsar's own tests of compaction, unchanged, on a real ZooKeeper and a real bookie.
 *
 * <pre>
 * java ... PeerSuite ZOOKEEPER RESULTS ROUNDS CLASS[#METHOD,...]...
 * </pre>
 *
 * ZOOKEEPER is its host and port; each broker gets a root of its own in it, and all of them share the ledgers in its
 * own root. RESULTS is a file to which a line of JSON is appended for each test that has ended. ROUNDS is an address: a
 * POST to it is a round by Lithify, which stands in for every compaction; `-` leaves compactions to Pulsar.
 */
public final class PeerSuite {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final AtomicInteger ROOTS = new AtomicInteger();
    private static final String MEMORY = "memory:";
    private static final String SHARED = "/shared";
    private static final int SESSION_MS = 30_000;
    private static final int TEST_MS = 300_000;

    private static String zookeeper;
    private static String rounds;

    // No method that is delegated to names a class of Pulsar's: it would be loaded while another is changed, unchanged.

    /** The broker that was started last. */
    public static volatile Object broker;

    public static void main(String[] arguments) throws Exception {
        zookeeper = arguments[0];
        Path results = Path.of(arguments[1]);
        rounds = arguments[2];
        install();
        makeRoot(SHARED);
        Awaitility.setDefaultTimeout(Duration.ofSeconds(90));
        Awaitility.ignoreExceptionsByDefault(); // the subscription that they wait for is there once a round has begun
        TestNG testng = new TestNG(false);
        testng.setXmlSuites(List.of(suite(List.of(arguments).subList(3, arguments.length))));
        testng.addListener(new Results(results));
        testng.run();
        System.exit(0); // what tests leave running does not keep it
    }

    private static XmlSuite suite(List<String> wanted) {
        XmlSuite suite = new XmlSuite();
        suite.setTimeOut(String.valueOf(TEST_MS));
        XmlTest test = new XmlTest(suite);
        List<XmlClass> classes = new ArrayList<>();
        for (String one : wanted) {
            String[] parts = one.split("#");
            XmlClass type = new XmlClass(parts[0]);
            if (parts.length > 1) {
                List<XmlInclude> methods = new ArrayList<>();
                for (String method : parts[1].split(",")) {
                    methods.add(new XmlInclude(method));
                }
                type.setIncludedMethods(methods);
            }
            classes.add(type);
        }
        test.setXmlClasses(classes);
        return suite;
    }

    private static void makeRoot(String path) throws Exception {
        try (ZooKeeper client = new ZooKeeper(zookeeper, SESSION_MS, event -> { })) {
            client.create(path, new byte[0], ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        }
    }

    private static void install() {
        AgentBuilder agent = new AgentBuilder.Default()
            .with(AgentBuilder.Listener.StreamWriting.toSystemOut().withErrorsOnly())
            .type(ElementMatchers.named("org.apache.pulsar.broker.auth.MockedPulsarServiceBaseTest"))
            .transform((builder, type, loader, module, domain) -> builder
                .method(ElementMatchers.named("configureMetadataStores"))
                .intercept(MethodDelegation.to(Stores.class)))
            .type(ElementMatchers.named("org.apache.pulsar.broker.testcontext.PulsarTestContext"))
            .transform((builder, type, loader, module, domain) -> builder
                .method(ElementMatchers.named("getMockBookKeeper"))
                .intercept(MethodDelegation.to(NoMock.class)))
            .type(ElementMatchers.named("org.apache.bookkeeper.client.PulsarMockBookKeeper"))
            .transform((builder, type, loader, module, domain) -> builder // which the mock of 4.0 lacks
                .defineMethod("setDefaultReadEntriesDelayMillis", void.class, Visibility.PUBLIC)
                .withParameters(long.class).intercept(StubMethod.INSTANCE))
            .type(ElementMatchers.named("org.apache.pulsar.metadata.impl.MetadataStoreFactoryImpl"))
            .transform((builder, type, loader, module, domain) -> builder
                .visit(Advice.to(NoMemory.class).on(ElementMatchers.named("newInstance"))))
            .type(ElementMatchers.named("org.apache.pulsar.broker.PulsarService"))
            .transform((builder, type, loader, module, domain) -> builder
                .visit(Advice.to(Started.class).on(ElementMatchers.named("start"))));
        if (!rounds.equals("-")) {
            agent = agent
                .type(ElementMatchers.named("org.apache.pulsar.compaction.Compactor"))
                .transform((builder, type, loader, module, domain) -> builder
                    .method(ElementMatchers.named("compact"))
                    .intercept(MethodDelegation.to(Rounds.class)));
        }
        agent.installOn(ByteBuddyAgent.install());
    }

    /** Real stores in place of the mocks. */
    public static final class Stores {
        public static void configureMetadataStores(@Argument(0) Object given) throws Exception {
            PulsarTestContext.Builder builder = (PulsarTestContext.Builder) given;
            String root = "/run-" + ROOTS.incrementAndGet();
            makeRoot(root);
            MetadataStoreExtended store = MetadataStoreExtended.create(
                "zk:" + zookeeper + root, MetadataStoreConfig.builder().build());
            ClientConfiguration ledgers = new ClientConfiguration();
            ledgers.setMetadataServiceUri("metadata-store:zk:" + zookeeper);
            BookKeeper original = new BookKeeper(ledgers);
            BookKeeper bookkeeper = Mockito.spy(original); // as tests expect of theirs
            Mockito.doNothing().when(bookkeeper).close(); // a broker that is started again has the same
            builder.configCustomizer(conf -> {
                conf.setManagedLedgerDefaultEnsembleSize(1);
                conf.setManagedLedgerDefaultWriteQuorum(1);
                conf.setManagedLedgerDefaultAckQuorum(1);
            });
            builder.localMetadataStore(store).configurationMetadataStore(store).bookKeeperClient(bookkeeper);
            builder.registerCloseable(store).registerCloseable(original);
        }
    }

    /** What tests get that prepare or ask their mock of a BookKeeper, which is not there: it does nothing. */
    public static final class NoMock {
        private static final PulsarMockBookKeeper MOCK = Mockito.mock(PulsarMockBookKeeper.class);

        @RuntimeType
        public static Object getMockBookKeeper() {
            return MOCK;
        }
    }

    /** A cluster that tests share has its metadata in memory, where no other process can read them: ZooKeeper, too. */
    public static final class NoMemory {
        @Advice.OnMethodEnter
        public static void opened(@Advice.Argument(value = 0, readOnly = false) String url) {
            url = PeerSuite.metadataUrl(url);
        }
    }

    /** Where the metadata are that tests have at `url`. */
    public static String metadataUrl(String url) {
        return url != null && url.startsWith(MEMORY) ? "zk:" + zookeeper + SHARED : url;
    }

    /** Notes which broker runs. */
    public static final class Started {
        @Advice.OnMethodEnter
        public static void started(@Advice.This Object service) {
            broker = service;
        }
    }

    /** Rounds in place of compactions. */
    public static final class Rounds {
        private static final HttpClient CLIENT = HttpClient.newHttpClient();

        public static CompletableFuture<Long> compact(@This Object compactor, @Argument(0) String topic)
            throws Exception {
            ServiceConfiguration conf = (ServiceConfiguration) field(compactor, "conf");
            PulsarService service = (PulsarService) broker;
            boolean eventTime = compactor.getClass().getName().contains("EventTime");
            boolean shared = service.getConfiguration().getMetadataStoreUrl().startsWith(MEMORY);
            String wanted = JSON.writeValueAsString(Map.of(
                "topic", topic,
                "metadata_url", "zk:" + zookeeper + (shared ? SHARED : ""),
                "service_url", service.getBrokerServiceUrl(),
                "admin_url", service.getWebServiceAddress(),
                "retain_null_key", conf.isTopicCompactionRetainNullKey(),
                "order", eventTime ? "event-time" : "publish"));
            HttpRequest request = HttpRequest.newBuilder(URI.create(rounds))
                .POST(HttpRequest.BodyPublishers.ofString(wanted)).build();
            return CLIENT.sendAsync(request, HttpResponse.BodyHandlers.ofString())
                .thenApply(answer -> {
                if (answer.statusCode() != 200) {
                    throw new IllegalStateException(answer.body());
                }
                return Long.valueOf(answer.body());
            });
        }

        private static Object field(Object of, String name) throws Exception {
            for (Class<?> type = of.getClass(); type != null; type = type.getSuperclass()) {
                for (Field field : type.getDeclaredFields()) {
                    if (field.getName().equals(name)) {
                        field.setAccessible(true);
                        return field.get(of);
                    }
                }
            }
            throw new NoSuchFieldException(name);
        }
    }

    /** Writes how each test ended. */
    private record Results(Path file) implements ITestListener {
        @Override
        public void onTestStart(ITestResult result) {
            System.out.println("TEST " + name(result));
        }

        @Override
        public void onTestSuccess(ITestResult result) {
            write(result, "passed");
        }

        @Override
        public void onTestFailure(ITestResult result) {
            write(result, "failed");
        }

        @Override
        public void onTestSkipped(ITestResult result) {
            write(result, "skipped");
        }

        private static String name(ITestResult result) {
            return result.getTestClass().getRealClass().getSimpleName() + "." + result.getMethod().getMethodName();
        }

        private void write(ITestResult result, String outcome) {
            JsonNode line = JSON.valueToTree(Map.of(
                "test", name(result),
                "parameters", java.util.Arrays.toString(result.getParameters()),
                "outcome", outcome,
                "ms", result.getEndMillis() - result.getStartMillis(),
                "error", String.valueOf(result.getThrowable())));
            try {
                Files.writeString(file, line + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            } catch (java.io.IOException error) {
                throw new java.io.UncheckedIOException(error);
            }
            if (result.getThrowable() != null) {
                result.getThrowable().printStackTrace(System.out);
            }
        }
    }
}
