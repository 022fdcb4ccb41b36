import { randomBytes } from 'node:crypto';
import { loadConfig } from '../core/config/load.js';
import type { Config, SectionName } from '../core/config/schema.js';
import type { DeadlineChannel, OrderEventChannel, RedriveChannel } from '../core/ports/channels.js';
import type { Log } from '../core/ports/log.js';
import type { OutboxMark } from '../core/ports/outbox-mark.js';
import { OperationalError } from '../core/errors.js';
import { lostTailOf } from '../mysql/lost-tail.js';
import { openMysqlPool, type MysqlPool, type Statements } from '../mysql/pool.js';
import { createWorkerSlots } from '../mysql/worker-slots.js';
import { createOrderIdMinter, type OrderIdMinter } from '../orders/order-id-minter.js';
import { connectRedis, type RedisConnection } from '../redis/connection.js';
import { createOutboxMark } from '../redis/outbox-mark.js';
import type { ProducerOptions } from '../rocketmq/signed-message.js';
import { brokerConnection, messageSignatures, openRedis } from './servers.js';
import { printError } from './print.js';
import { systemClock as clock } from './system-clock.js';
import { createLog } from './telemetry.js';

/** The sections that a publisher needs. */
export type PublishSections = 'rocketmq' | 'brokerAccess' | 'messages';

/** Renewed for each purchase that is given up, so it only has to last for one. */
const SLOT_LEASE_MS = 60_000;

/** Connections that a program already has open and will close itself. */
interface GivenConnections {
  readonly redis?: RedisConnection;
  readonly mysql?: MysqlPool;
  readonly redrives?: RedriveChannel;
}

/**
 * The connections for the work of operators, from the command line or over HTTP. Opens each connection when it is first
 * needed. `close` ends the connections that were opened by this object. `S` lists the sections of the given
 * configuration: a method that needs another section does not compile.
 */
export class Connections<S extends SectionName> {
  readonly config: Config<S>;
  readonly log: Log;
  readonly clock = clock;
  readonly #given: GivenConnections;
  readonly #channels: { close(): Promise<void> }[] = [];
  #mysql: MysqlPool | null = null;
  #redis: Promise<RedisConnection> | null = null;
  #minter: OrderIdMinter | null = null;
  #mark: Promise<OutboxMark | null> | null = null;
  #redisOfMark: RedisConnection | null = null;
  #redrives: RedriveChannel | null = null;

  constructor(config: Config<S>, log: Log, given: GivenConnections = {}) {
    this.config = config;
    this.log = log;
    this.#given = given;
  }

  /** Like a program, a command does not use a MySQL that has lost its last writes. */
  mysql(this: Connections<'mysql' | 'redis'>): MysqlPool {
    const flawOf = (session: Statements): Promise<string | null> => this.#lostTailOf(session);
    return this.#given.mysql ?? (this.#mysql ??= openMysqlPool({ ...this.config.mysql, flawOf }));
  }

  /** @throws OperationalError redis */
  async redis(this: Connections<'redis'>): Promise<RedisConnection> {
    return this.#given.redis ?? (this.#redis ??= openRedis(this.config.redis, this.log));
  }

  /** The channel for batches that are published again. */
  redrives(this: Connections<PublishSections>): RedriveChannel {
    if (this.#given.redrives !== undefined) return this.#given.redrives;
    const producer = this.#producer();
    return (this.#redrives ??= this.#channel(async () => (await loadChannels()).createRedriveChannel(producer)));
  }

  /** The channel for payment deadlines. */
  deadlines(this: Connections<PublishSections>): DeadlineChannel {
    const producer = this.#producer();
    return this.#channel(async () => (await loadChannels()).createDeadlineChannel(producer));
  }

  events(this: Connections<PublishSections>): OrderEventChannel {
    const producer = this.#producer();
    return this.#channel(async () => (await loadChannels()).createOrderEventChannel(producer));
  }

  /** Mints the order ids of purchases that are given up. Takes a slot for order ids with the first id. */
  minter(this: Connections<'mysql' | 'redis'>): OrderIdMinter {
    this.#minter ??= createOrderIdMinter(
      { slots: createWorkerSlots(this.mysql(), this.config.mysql.cell), clock, log: this.log },
      { owner: `operator-${randomBytes(8).toString('hex')}`, leaseMs: SLOT_LEASE_MS },
    );
    return this.#minter;
  }

  /** Never rejects. */
  async close(): Promise<void> {
    await Promise.all(this.#channels.map((channel) => channel.close()));
    await this.#minter?.close();
    const redis = await this.#redis?.catch(() => null);
    await redis?.close();
    await this.#mysql?.close();
    await this.#redisOfMark?.close();
  }

  async #lostTailOf(this: Connections<'redis'>, session: Statements): Promise<string | null> {
    const mark = await (this.#mark ??= this.#openMark());
    return mark === null ? null : lostTailOf(session, mark);
  }

  /**
   * Opens Redis without the checks of a program, because it does not matter here whether it may hold stock. If Redis is
   * down, the command runs without it, because an outage of Redis must not stop work on MySQL too.
   * @throws OperationalError redis, if another attempt would fail too
   */
  async #openMark(this: Connections<'redis'>): Promise<OutboxMark | null> {
    try {
      this.#redisOfMark = await connectRedis(this.config.redis, this.log);
      return createOutboxMark(this.#redisOfMark);
    } catch (error) {
      if (!(error instanceof OperationalError) || !error.retryable) throw error;
      printError('Redis does not answer, so it is not known whether MySQL has lost its last writes.');
      return null;
    }
  }

  #producer(this: Connections<PublishSections>): ProducerOptions {
    return { ...brokerConnection(this.config, this.log), signatures: messageSignatures(this.config.messages) };
  }

  #channel<M>(start: () => Promise<Channel<M>>): Channel<M> {
    const channel = startedWhenUsed(start);
    this.#channels.push(channel);
    return channel;
  }
}

/** Opens connections for a piece of a command's work, and closes them again. */
export async function withConnections<S extends SectionName, T>(
  config: Config<S>,
  log: Log,
  work: (connections: Connections<S>) => Promise<T>,
): Promise<T> {
  const connections = new Connections(config, log);
  try {
    return await work(connections);
  } finally {
    await connections.close();
  }
}

/** Like `openConnections`, for commands: with the settings of the environment, and a log of errors only. */
export const withConfigured = <S extends SectionName, T>(
  command: string,
  sections: readonly S[],
  work: (connections: Connections<S>) => Promise<T>,
): Promise<T> => withConnections(loadConfig(sections), createLog(command, 'error'), work);

interface Channel<M> {
  publish(message: M): Promise<void>;
  /** Never rejects. */
  close(): Promise<void>;
}

/** The broker client takes longer to load than most commands take to run, and only few commands publish. */
const loadChannels = () => import('../rocketmq/plain-channels.js');

/**
 * Returns a producer that starts with its first message, because operators seldom need it. If a start fails, it is
 * retried with the next message.
 */
function startedWhenUsed<M>(start: () => Promise<Channel<M>>): Channel<M> {
  let opening: Promise<Channel<M>> | null = null;
  return {
    async publish(message) {
      opening ??= start().catch((error: unknown) => {
        opening = null;
        throw error;
      });
      await (await opening).publish(message);
    },
    async close() {
      const channel = await opening?.catch(() => null);
      await channel?.close();
    },
  };
}
