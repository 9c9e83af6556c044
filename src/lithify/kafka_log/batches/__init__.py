"""Record batches as brokers store and send them: read in all three versions, written in the newest."""
