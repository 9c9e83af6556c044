import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.bookkeeper.client.AsyncCallback;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.LedgerEntry;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.apache.bookkeeper.conf.ClientConfiguration;
import org.apache.bookkeeper.meta.LedgerManager;
import org.apache.bookkeeper.versioning.Versioned;

/**
 * Writes, reads, deletes and lists ledgers of BookKeeper for the Python program that started it.
 *
 * <pre>
 * stdin    [size, 4][operation, 1][what it needs]     stdout    [size, 4][0: done, 1: failed][what it tells]
 * </pre>
 *
 * Answers come in the order of the requests. Every wait ends after as many seconds as the program says. When
 * stdin ends, so does this JVM, and leaves the ledgers as they are. Janino compiles this, so it has no lambdas
 * and needs casts where javac infers types. See ledger_jvm.py for the other side.
 */
public final class Ledgers {
    static final int GREETING = 0x4c495448;
    static final int IN_FLIGHT_ENTRIES = 5000;
    static final int IN_FLIGHT_BYTES = 32 << 20;
    static final int LARGEST_ENTRY_BYTES = 256 << 20;
    static final int PAGE_LEDGERS = 500;
    static final int FIRST_PAGE_ENTRIES = 16;
    static final int PAGE_ENTRIES = 5000;
    static final long PAGE_BYTES = 2L << 20;
    static final byte[] COMPACTED = "compacted-ledger".getBytes(StandardCharsets.UTF_8);

    final BookKeeper client;
    final int timeoutSeconds;
    LedgerHandle ledger;
    Semaphore entries;
    Semaphore bytes;
    Failure failure;
    Iterator listed;
    byte[] listedComponent;
    byte[] listedTopic;
    LedgerManager.LedgerRangeIterator ranges;
    long since;

    /** The first error of the entries that are on their way. */
    static final class Failure {
        volatile int code = BKException.Code.OK;
    }

    /** A result of one of BookKeeper's calls, which all report in the same way. */
    static final class Outcome
            implements AsyncCallback.CreateCallback, AsyncCallback.DeleteCallback, AsyncCallback.CloseCallback,
            AsyncCallback.OpenCallback, AsyncCallback.ReadCallback {
        final CompletableFuture future = new CompletableFuture();

        public void createComplete(int code, LedgerHandle handle, Object context) {
            complete(code, handle);
        }

        public void deleteComplete(int code, Object context) {
            complete(code, null);
        }

        public void openComplete(int code, LedgerHandle handle, Object context) {
            complete(code, handle);
        }

        public void readComplete(int code, LedgerHandle handle, Enumeration entries, Object context) {
            complete(code, entries);
        }

        public void closeComplete(int code, LedgerHandle handle, Object context) {
            complete(code, handle);
        }

        void complete(int code, Object result) {
            if (code == BKException.Code.OK) {
                future.complete(result);
            } else {
                future.completeExceptionally(BKException.create(code));
            }
        }
    }

    /** One entry that is on its way. */
    static final class Added implements AsyncCallback.AddCallback {
        final Semaphore entries;
        final Semaphore bytes;
        final Failure failure;

        Added(Semaphore entries, Semaphore bytes, Failure failure) {
            this.entries = entries;
            this.bytes = bytes;
            this.failure = failure;
        }

        public void addComplete(int code, LedgerHandle handle, long entry, Object size) {
            if (code != BKException.Code.OK && failure.code == BKException.Code.OK) {
                failure.code = code;
            }
            bytes.release(((Integer) size).intValue());
            entries.release();
        }
    }

    Ledgers(BookKeeper client, int timeoutSeconds) {
        this.client = client;
        this.timeoutSeconds = timeoutSeconds;
    }

    /** Arguments: the metadata service URI, the path of the ledgers in it, the timeout in seconds. */
    public static void main(String[] arguments) throws Exception {
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out));
        System.setOut(System.err); // what libraries log must not come between the answers
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 18));
        try {
            int timeoutSeconds = Integer.parseInt(arguments[2]);
            ClientConfiguration conf = new ClientConfiguration();
            conf.setMetadataServiceUri(arguments[0]);
            conf.setZkLedgersRootPath(arguments[1]);
            conf.setZkTimeout(timeoutSeconds * 1000);
            conf.setThrottleValue(0); // its default lets 5000 entries a second pass
            conf.setUseV2WireProtocol(true);
            conf.setAddEntryTimeout(timeoutSeconds);
            conf.setAddEntryQuorumTimeout(timeoutSeconds);
            conf.setReadEntryTimeout(timeoutSeconds);
            conf.setBatchReadEnabled(true); // where bookies cannot, the client asks for entries one by one
            conf.setNumWorkerThreads(2);
            conf.setNumIOThreads(2);
            conf.setNettyMaxFrameSizeBytes(LARGEST_ENTRY_BYTES + (1 << 20));
            Ledgers ledgers = new Ledgers(new BookKeeper(conf), timeoutSeconds);
            out.writeInt(5);
            out.writeByte(0);
            out.writeInt(GREETING);
            out.flush();
            while (true) {
                ledgers.serve(in, out);
            }
        } catch (EOFException end) {
            Runtime.getRuntime().halt(0);
        } catch (Throwable error) {
            error.printStackTrace();
            answer(out, 1, describe(error));
            Runtime.getRuntime().halt(1);
        }
    }

    void serve(DataInputStream in, DataOutputStream out) throws Exception {
        in.readInt();
        byte operation = in.readByte();
        if (operation == 'A') {
            append(in, out);
            return;
        }
        if (operation == 'R') {
            read(in, out);
            return;
        }
        int status = 0;
        byte[] told;
        try {
            switch (operation) {
                case 'C':
                    told = create(in);
                    break;
                case 'E':
                    told = end();
                    break;
                case 'D':
                    told = delete(in.readLong());
                    break;
                case 'L':
                    told = list(in);
                    break;
                case 'N':
                    told = page();
                    break;
                default:
                    throw new IllegalArgumentException("operation " + operation);
            }
        } catch (EOFException end) {
            throw end;
        } catch (Exception error) {
            status = 1;
            told = describe(error);
        }
        answer(out, status, told);
    }

    byte[] create(DataInputStream in) throws Exception {
        int ensemble = in.readInt();
        int writeQuorum = in.readInt();
        int ackQuorum = in.readInt();
        Map metadata = new HashMap();
        for (int left = in.readInt(); left > 0; left--) {
            String name = new String(bytes(in), StandardCharsets.UTF_8);
            metadata.put(name, bytes(in));
        }
        Outcome outcome = new Outcome();
        client.asyncCreateLedger(ensemble, writeQuorum, ackQuorum, BookKeeper.DigestType.CRC32, new byte[0], outcome,
                null, metadata);
        ledger = (LedgerHandle) awaited(outcome.future);
        entries = new Semaphore(IN_FLIGHT_ENTRIES);
        bytes = new Semaphore(IN_FLIGHT_BYTES);
        failure = new Failure();
        return longs(new long[] {ledger.getId()});
    }

    /** Reads all entries of the request in any case, so that the next request begins where it should. */
    void append(DataInputStream in, DataOutputStream out) throws Exception {
        Exception problem = ledger == null ? new IllegalStateException("no ledger is open") : null;
        for (int left = in.readInt(); left > 0; left--) {
            byte[] entry = bytes(in);
            if (problem == null && failure.code != BKException.Code.OK) {
                problem = BKException.create(failure.code);
            }
            if (problem == null) {
                int size = Math.min(entry.length, IN_FLIGHT_BYTES);
                if (entries.tryAcquire(1, timeoutSeconds, TimeUnit.SECONDS)
                        && bytes.tryAcquire(size, timeoutSeconds, TimeUnit.SECONDS)) {
                    ledger.asyncAddEntry(entry, new Added(entries, bytes, failure), Integer.valueOf(size));
                } else {
                    problem = new TimeoutException("no bookie confirmed an entry");
                }
            }
        }
        answer(out, problem == null ? 0 : 1, problem == null ? new byte[0] : describe(problem));
    }

    byte[] end() throws Exception {
        if (ledger == null) {
            throw new IllegalStateException("no ledger is open");
        }
        if (!entries.tryAcquire(IN_FLIGHT_ENTRIES, timeoutSeconds, TimeUnit.SECONDS)) {
            throw new TimeoutException("no bookie confirmed the last entries");
        }
        if (failure.code != BKException.Code.OK) {
            throw BKException.create(failure.code);
        }
        Outcome outcome = new Outcome();
        ledger.asyncClose(outcome, null);
        awaited(outcome.future);
        byte[] told = longs(new long[] {ledger.getLastAddConfirmed() + 1, ledger.getLength()});
        ledger = null;
        return told;
    }

    /** Up to an entry, or the last one (-1). Answers with pages of entries in their order, and at the end with an empty one, or with what went wrong. */
    void read(DataInputStream in, DataOutputStream out) throws Exception {
        long id = in.readLong();
        String digest = new String(bytes(in), StandardCharsets.UTF_8);
        byte[] password = bytes(in);
        long first = in.readLong();
        long last = in.readLong();
        try {
            Outcome opened = new Outcome();
            client.asyncOpenLedgerNoRecovery(id, BookKeeper.DigestType.valueOf(digest), password, opened, null);
            LedgerHandle handle = (LedgerHandle) awaited(opened.future);
            last = last < 0 ? handle.getLastAddConfirmed() : last;
            int count = FIRST_PAGE_ENTRIES;
            long careful = -1; // up to here entries are read one by one: one of them is damaged, or not there
            Outcome next = asked(handle, first, last, count);
            while (next != null) {
                Enumeration found;
                try {
                    found = (Enumeration) awaited(next.future);
                } catch (Exception error) {
                    if (first <= careful || count == 1) {
                        throw new IOException("entry " + id + ":" + first + " cannot be read: "
                                + new String(describe(error), StandardCharsets.UTF_8), error);
                    }
                    careful = first + count - 1;
                    count = 1;
                    next = asked(handle, first, last, count);
                    continue;
                }
                List page = new ArrayList();
                long size = 0;
                while (found.hasMoreElements()) {
                    byte[] entry = ((LedgerEntry) found.nextElement()).getEntry();
                    size += entry.length;
                    page.add(entry);
                }
                if (page.isEmpty()) {
                    throw new IOException("ledger " + id + " has no entry " + first);
                }
                count = (int) Math.max(1, Math.min(PAGE_ENTRIES, PAGE_BYTES * page.size() / Math.max(1, size)));
                count = first + page.size() <= careful ? 1 : count;
                next = asked(handle, first + page.size(), last, count); // comes while this page is written
                writePage(out, first, page, size);
                first += page.size();
            }
            handle.close();
            writePage(out, first, new ArrayList(), 0);
        } catch (Exception error) {
            answer(out, 1, describe(error));
        }
    }

    /** Entries that the broker has confirmed, also those behind the last one that bookies know to be confirmed. */
    Outcome asked(LedgerHandle handle, long first, long last, int count) {
        if (first > last) {
            return null;
        }
        Outcome outcome = new Outcome();
        if (count == 1) { // a batch with a damaged entry never ends, and this says what is wrong
            handle.asyncReadUnconfirmedEntries(first, first, outcome, null);
            return outcome;
        }
        int most = (int) Math.min(count, last - first + 1);
        handle.asyncBatchReadUnconfirmedEntries(first, most, PAGE_BYTES, outcome, null);
        return outcome;
    }

    void writePage(DataOutputStream out, long first, List page, long size) throws IOException {
        out.writeInt((int) (1 + 8 + 4 + 4 * page.size() + size));
        out.writeByte(0);
        out.writeLong(first);
        out.writeInt(page.size());
        for (int at = 0; at < page.size(); at++) {
            out.writeInt(((byte[]) page.get(at)).length);
        }
        for (int at = 0; at < page.size(); at++) {
            out.write((byte[]) page.get(at));
        }
        out.flush();
    }

    byte[] delete(long id) throws Exception {
        Outcome outcome = new Outcome();
        client.asyncDeleteLedger(id, outcome, null);
        try {
            awaited(outcome.future);
        } catch (BKException error) {
            if (error.getCode() != BKException.Code.NoSuchLedgerExistsException
                    && error.getCode() != BKException.Code.NoSuchLedgerExistsOnMetadataServerException) {
                throw error;
            }
        }
        return new byte[0];
    }

    byte[] list(DataInputStream in) throws Exception {
        since = in.readLong();
        listedComponent = bytes(in);
        listedTopic = bytes(in);
        ranges = client.getLedgerManager().getLedgerRanges(timeoutSeconds * 1000L);
        listed = new ArrayList().iterator();
        return page();
    }

    /** Ledgers of the component, and the topic if one is named, among the next: is there more, then each of them. */
    byte[] page() throws Exception {
        List ids = new ArrayList();
        List asked = new ArrayList();
        while (ids.size() < PAGE_LEDGERS && (listed.hasNext() || ranges.hasNext())) {
            if (!listed.hasNext()) {
                listed = ranges.next().getLedgers().iterator();
                continue;
            }
            long id = ((Long) listed.next()).longValue();
            if (id >= since) {
                ids.add(Long.valueOf(id));
                asked.add(client.getLedgerManager().readLedgerMetadata(id));
            }
        }
        ByteArrayOutputStream told = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(told);
        out.writeByte(listed.hasNext() || ranges.hasNext() ? 1 : 0);
        for (int at = 0; at < ids.size(); at++) {
            try {
                Versioned found = (Versioned) awaited((CompletableFuture) asked.get(at));
                tell(((Long) ids.get(at)).longValue(), (LedgerMetadata) found.getValue(), out);
            } catch (BKException gone) {
                if (gone.getCode() != BKException.Code.NoSuchLedgerExistsException
                        && gone.getCode() != BKException.Code.NoSuchLedgerExistsOnMetadataServerException) {
                    throw gone;
                }
            }
        }
        return told.toByteArray();
    }

    void tell(long id, LedgerMetadata metadata, DataOutputStream out) throws IOException {
        Map custom = metadata.getCustomMetadata();
        boolean compacted = Arrays.equals(COMPACTED, listedComponent);
        byte[] topic = (byte[]) custom.get(compacted ? "pulsar/compactedTopic" : "pulsar/managed-ledger");
        if (topic != null && Arrays.equals(listedComponent, (byte[]) custom.get("component"))
                && (listedTopic.length == 0 || Arrays.equals(listedTopic, topic))) {
            out.writeLong(id);
            out.writeByte(metadata.isClosed() ? 1 : 0);
            writeBytes(out, topic);
            writeBytes(out, (byte[]) custom.get("pulsar/compactedTo"));
            writeBytes(out, (byte[]) custom.get("lithify/run"));
        }
    }

    Object awaited(CompletableFuture future) throws Exception {
        try {
            return future.get(timeoutSeconds, TimeUnit.SECONDS);
        } catch (ExecutionException error) {
            Throwable cause = error.getCause();
            throw cause instanceof Exception ? (Exception) cause : error;
        } catch (TimeoutException error) {
            throw new TimeoutException("no answer within " + timeoutSeconds + " s");
        }
    }

    static byte[] bytes(DataInputStream in) throws IOException {
        int size = in.readInt();
        if (size < 0 || size > LARGEST_ENTRY_BYTES) {
            throw new EOFException("a part of " + size + " bytes");
        }
        byte[] read = new byte[size];
        in.readFully(read);
        return read;
    }

    static void writeBytes(DataOutputStream out, byte[] data) throws IOException {
        byte[] written = data == null ? new byte[0] : data;
        out.writeInt(written.length);
        out.write(written);
    }

    static byte[] longs(long[] numbers) throws IOException {
        ByteArrayOutputStream data = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(data);
        for (int at = 0; at < numbers.length; at++) {
            out.writeLong(numbers[at]);
        }
        return data.toByteArray();
    }

    static byte[] describe(Throwable error) {
        String name = error.getClass().getSimpleName();
        String said = error.getMessage() == null ? name : name + ": " + error.getMessage();
        return said.getBytes(StandardCharsets.UTF_8);
    }

    static void answer(DataOutputStream out, int status, byte[] told) throws IOException {
        out.writeInt(told.length + 1);
        out.writeByte(status);
        out.write(told);
        out.flush();
    }
}
