import { encodeOrderEvents } from '../../../src/core/order-event.js';
import { encodePaymentDeadline } from '../../../src/core/payment-deadline.js';
import { TOPICS } from '../../../src/core/topics.js';
import type { DeadlineChannel, OrderEventChannel } from '../../../src/core/ports/channels.js';
import type { MemoryBroker } from './memory-broker.js';

/** The producers of deadlines and events, on a broker in memory. */
export function memoryOrderChannels(broker: MemoryBroker): {
  readonly deadlines: DeadlineChannel;
  readonly events: OrderEventChannel;
} {
  return {
    deadlines: {
      publish: async (deadline) => {
        const { saleId, batchId, deadlineAtMs } = deadline;
        const topic = TOPICS.paymentDeadline;
        broker.send(topic, encodePaymentDeadline(deadline), { topic, saleId, batchId }, deadlineAtMs);
      },
    },
    events: {
      publish: async (events) => {
        const topic = TOPICS.orderEvent;
        broker.send(topic, encodeOrderEvents(events), { topic, saleId: events[0]?.saleId ?? '' });
      },
    },
  };
}
