import type { OrderEvent } from '../order-event.js';
import type { PaymentDeadline } from '../payment-deadline.js';

/** The producer side of the topic of payment deadlines. */
export interface DeadlineChannel {
  /**
   * Stores a message that shows itself when the deadline is over; at once when it is over already.
   * @throws OperationalError rocketmq; the message may have been stored (a duplicate does no harm)
   */
  publish(deadline: PaymentDeadline): Promise<void>;
}

/** The producer side of the topic of order events. */
export interface OrderEventChannel {
  /**
   * Publishes events as one message.
   * @param events 1 to EVENTS_PER_MESSAGE_MAX, all of one sale
   * @throws OperationalError rocketmq; the message may have been stored (a duplicate does no harm)
   */
  publish(events: readonly OrderEvent[]): Promise<void>;
}
