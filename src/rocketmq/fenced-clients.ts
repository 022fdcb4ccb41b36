import { EventEmitter } from 'node:events';
import { Producer, SimpleConsumer, StatusChecker, type Endpoints, type MessageView } from 'rocketmq-client-nodejs';

type TelemetryStream = ReturnType<Producer['createTelemetryStream']>;

/** A producer whose telemetry neither ends the process after its release nor lives on after its shutdown. */
export class FencedProducer extends Producer {
  #stopped = false;

  override createTelemetryStream(endpoints: Endpoints): TelemetryStream {
    return this.#stopped ? deadStream() : fenceStream(super.createTelemetryStream(endpoints));
  }

  override async shutdown(): Promise<void> {
    this.#stopped = true;
    await super.shutdown();
  }
}

/** The same for a consumer, which also reads what became of an ack. */
export class FencedConsumer extends SimpleConsumer {
  #stopped = false;

  /** Rejects unless the broker took the ack. The client's own `ack` does not look at the answer per message. */
  async ackOne(view: MessageView): Promise<void> {
    for (const { status } of await this.ackMessage(view)) StatusChecker.check(status);
  }

  /** Rejects unless the broker took the new time. */
  async hideFor(view: MessageView, ms: number): Promise<void> {
    await this.changeInvisibleDuration(view, Math.max(0, Math.round(ms)));
  }

  override createTelemetryStream(endpoints: Endpoints): TelemetryStream {
    return this.#stopped ? deadStream() : fenceStream(super.createTelemetryStream(endpoints));
  }

  override async shutdown(): Promise<void> {
    this.#stopped = true;
    await super.shutdown();
  }
}

/** The client takes every listener off a stream that it releases; the error that follows would be uncaught. */
function fenceStream(stream: TelemetryStream): TelemetryStream {
  const removeAll = stream.removeAllListeners.bind(stream);
  stream.removeAllListeners = (event) => {
    removeAll(event);
    stream.on('error', () => undefined);
    return stream;
  };
  return stream;
}

/** For the timer that renews a broken stream one second later, shutdown or not. */
function deadStream(): TelemetryStream {
  const stream = new EventEmitter() as EventEmitter & { write(): boolean; end(): void };
  stream.write = () => false;
  stream.end = () => undefined;
  return stream as unknown as TelemetryStream;
}
