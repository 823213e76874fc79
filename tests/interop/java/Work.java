/** What there is to do for one message: it takes a while, so that who is killed is in the middle of it. */
final class Work {
    private static final long millis = 4;

    private Work() {}

    static void one() {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }
}
