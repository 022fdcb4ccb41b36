import { z } from 'zod';
import { OperationalError } from '../../core/errors.js';
import {
  OWN_GROUPS,
  type BrowseFrom,
  type DiscardedHalf,
  type FoundMessage,
} from '../../core/ports/message-inspection.js';
import { includesRole } from '../../core/roles.js';
import { HALF_TOPICS, OWN_TOPICS, TOPICS } from '../../core/topics.js';
import { resumableOf, resumeHalf } from '../../recovery/resume-halves.js';
import { roleNeededAnswer } from '../admission-answers.js';
import { json, problem, type Answer } from '../answer.js';
import type { BrokerList, BrokerViews } from '../broker-views.js';
import { defineRoute, jsonBody, type RouteServices } from '../route.js';
import { count, queryText, queryTime, queryWhole, queryWord, text } from '../schemas.js';

/**
 * What RocketMQ holds; the same as `seckill mq … --json`. Other systems may share the cluster: their messages and their groups are
 * for admins.
 */

const MESSAGES_MAX = 100;
const MESSAGES_DEFAULT = 20;
const DISCARDED_MAX = 200;
const NAME_MAX = 255;
const QUEUE_MAX = 65_535;

const NO_NAME_SERVER = 'This api does not know a name server of RocketMQ: set NAMESRV_ADDR.';
const TOO_MANY = 'Others look into RocketMQ by this api right now. Try again.';

const ms = z.number().min(0);
const down = z
  .array(z.object({ name: text, address: text, down: text }))
  .meta({ description: 'brokers that do not answer: what they hold is missing' });
const listOf = (item: z.ZodType) => z.object({ items: z.array(item), more: z.boolean(), down });

const broker = z
  .object({
    name: text,
    address: text,
    down: text.nullable(),
    version: text,
    putPerSecond: z.number(),
    getPerSecond: z.number(),
    diskUsed: z.number(),
  })
  .meta({ id: 'Broker' });
const group = z
  .object({ group: text, topic: text, lag: count, oldestMs: ms.nullable(), clients: count })
  .meta({ id: 'ConsumerGroup' });
const halfFields = {
  broker: text,
  topic: text,
  key: text,
  messageId: text,
  ageMs: ms,
  checks: count,
  saleId: text.nullable(),
  purchases: count.nullable(),
};
const client = { clientId: text, address: text, language: text };
const message = z
  .object({
    broker: text,
    topic: text,
    queueId: count,
    queueOffset: count,
    physicalOffset: count,
    offsetId: text,
    bornAtMs: count,
    storedAtMs: count,
    deliveries: count,
    body: text,
    properties: z.record(text, text),
  })
  .meta({ id: 'Message' });

const PROBLEMS_OF_MQ = ['broker_not_configured'] as const;
type Refused = Answer<'broker_not_configured' | 'unavailable' | 'overloaded' | 'wrong_state'>;

/** Says which server does not answer: operators have to know. */
async function ask<A extends Answer>(
  { mq }: Pick<RouteServices, 'mq'>,
  answer: (views: BrokerViews) => Promise<A>,
): Promise<A | Answer<'broker_not_configured' | 'unavailable'>> {
  if (mq === null) return problem('broker_not_configured', { detail: NO_NAME_SERVER });
  try {
    return await answer(mq);
  } catch (error) {
    if (!(error instanceof OperationalError) || error.dependency !== 'rocketmq') throw error;
    return problem('unavailable', { detail: error.message });
  }
}

const found = (body: object): Answer<200> => json(200, 'found', body);

export const readMqStatus = defineRoute({
  method: 'get',
  path: '/admin/v1/mq/status',
  label: 'admin',
  operationId: 'readMqStatus',
  summary: 'RocketMQ in one answer: brokers, groups with their lag, dead letters, half messages, who can be asked.',
  access: 'viewer',
  endpoint: null,
  answers: {
    200: {
      description: 'what the brokers that answer hold; `brokers[].down` says which do not',
      schema: z
        .object({
          brokers: z.array(broker),
          groups: z.array(group),
          deadLetters: z.array(z.object({ topic: text, kept: count })),
          halves: z.object({ open: count, oldestMs: ms.nullable(), checksMost: count, more: z.boolean() }),
          discarded: count,
          producers: z.record(text, count),
        })
        .meta({ id: 'MqStatus' }),
    },
  },
  problems: PROBLEMS_OF_MQ,
  handle: (_call, services) => ask(services, async (views) => found(await views.status())),
});

export const listMqGroups = defineRoute({
  method: 'get',
  path: '/admin/v1/mq/groups',
  label: 'admin',
  operationId: 'listMqGroups',
  summary:
    'Consumer groups and what they have not been given yet, the largest lag first. With `all` those of other systems too, for which' +
    ' the role admin is needed.',
  access: 'viewer',
  endpoint: null,
  query: z.strictObject({ all: queryWord(['true', 'false']).default('false') }),
  answers: { 200: { description: 'the groups', schema: listOf(group) } },
  problems: PROBLEMS_OF_MQ,
  handle({ query, roles }, services) {
    const isAll = query.all === 'true';
    if (isAll && !includesRole(roles, 'admin')) return roleNeededAnswer('admin', null);
    return ask(services, async (views) => found(await (isAll ? views.allGroups() : views.ownGroups())));
  },
});

export const listMqTopics = defineRoute({
  method: 'get',
  path: '/admin/v1/mq/topics',
  label: 'admin',
  operationId: 'listMqTopics',
  summary: 'Topics and how many messages are kept.',
  access: 'viewer',
  endpoint: null,
  answers: {
    200: {
      description: 'the topics',
      schema: listOf(
        z
          .object({ topic: text, type: text, queues: count, kept: count, lastStoredAtMs: count.nullable() })
          .meta({ id: 'Topic' }),
      ),
    },
  },
  problems: PROBLEMS_OF_MQ,
  handle: (_call, services) => ask(services, async (views) => found(await views.topics())),
});

export const listHalves = defineRoute({
  method: 'get',
  path: '/admin/v1/mq/halves',
  label: 'admin',
  operationId: 'listHalves',
  summary: 'Half messages that have no answer, oldest first.',
  access: 'viewer',
  endpoint: null,
  answers: {
    200: { description: 'the half messages', schema: listOf(z.object(halfFields).meta({ id: 'HalfMessage' })) },
  },
  problems: PROBLEMS_OF_MQ,
  handle: (_call, services) => ask(services, async (views) => found(await views.halves())),
});

export const listDiscardedHalves = defineRoute({
  method: 'get',
  path: '/admin/v1/mq/halves/discarded',
  label: 'admin',
  operationId: 'listDiscardedHalves',
  summary: 'Half messages that the broker has given up, newest first: those of a key, or the newest `limit`.',
  access: 'viewer',
  endpoint: null,
  query: z.strictObject({
    key: queryText(NAME_MAX).optional(),
    limit: queryWhole(1, DISCARDED_MAX).default(MESSAGES_DEFAULT),
  }),
  answers: {
    200: {
      description: 'the half messages',
      schema: listOf(
        z
          .object({ ...halfFields, discardedAtMs: count, resumedAtMs: count.nullable(), offsetId: text })
          .meta({ id: 'DiscardedHalf' }),
      ),
    },
  },
  problems: [...PROBLEMS_OF_MQ, 'overloaded'],
  handle: ({ query: { key, limit } }, services) =>
    ask(services, (views) => listed(views, () => views.discarded(key === undefined ? { max: limit } : { key }))),
});

export const listMqProducers = defineRoute({
  method: 'get',
  path: '/admin/v1/mq/producers',
  label: 'admin',
  operationId: 'listMqProducers',
  summary: 'Clients that can be asked about half messages.',
  access: 'viewer',
  endpoint: null,
  answers: {
    200: {
      description: 'the clients; `group` is the topic',
      schema: listOf(z.object({ group: text, ...client }).meta({ id: 'Producer' })),
    },
  },
  problems: PROBLEMS_OF_MQ,
  handle: (_call, services) => ask(services, async (views) => found(await views.producers())),
});

export const listMqConsumers = defineRoute({
  method: 'get',
  path: '/admin/v1/mq/consumers',
  label: 'admin',
  operationId: 'listMqConsumers',
  summary: 'Clients that consume by a group. For a group of another system the role admin is needed.',
  access: 'viewer',
  endpoint: null,
  query: z.strictObject({ group: queryText(NAME_MAX) }),
  answers: {
    200: {
      description: 'the clients',
      schema: listOf(z.object({ group: text, ...client }).meta({ id: 'Consumer' })),
    },
  },
  problems: [...PROBLEMS_OF_MQ, 'overloaded'],
  handle({ query, roles }, services) {
    const isOurs = OWN_GROUPS.some(({ group: name }) => name === query.group);
    if (!isOurs && !includesRole(roles, 'admin')) return roleNeededAnswer('admin', null);
    return ask(services, (views) => listed(views, () => views.consumers(query.group)));
  },
});

export const listMessages = defineRoute({
  method: 'get',
  path: '/admin/v1/mq/messages',
  label: 'admin',
  operationId: 'listMessages',
  summary:
    'Messages of a topic with bodies and properties, oldest first: of a key, of an id, the first ones since a time or from a' +
    ' place of a queue on, or the newest. For a topic of another system the role admin is needed; of half messages, which all' +
    ' systems keep in one topic, others see those of ours.',
  access: 'viewer',
  endpoint: null,
  query: z
    .strictObject({
      topic: queryText(NAME_MAX).default(TOPICS.purchase),
      key: queryText(NAME_MAX).optional(),
      id: queryText(NAME_MAX).optional(),
      since: queryTime.optional(),
      queue: queryWhole(0, QUEUE_MAX).optional(),
      offset: queryWhole(0, Number.MAX_SAFE_INTEGER).optional(),
      limit: queryWhole(1, MESSAGES_MAX).default(MESSAGES_DEFAULT),
    })
    .refine(({ queue, offset }) => (queue === undefined) === (offset === undefined), {
      error: 'stands with queue, and queue with it',
      path: ['offset'],
    })
    .refine(({ key, id, since, queue }) => [key, id, since, queue].filter((way) => way !== undefined).length <= 1, {
      error: 'must stand alone: give one of key, id, since, and queue with offset',
      path: ['key'],
    }),
  answers: {
    200: {
      description: 'the messages; `more`: others match, or their bodies are too long for one answer',
      schema: listOf(message),
    },
  },
  problems: [...PROBLEMS_OF_MQ, 'overloaded'],
  handle({ query: { topic, key, id, limit, ...from }, roles }, services) {
    const isAdmin = includesRole(roles, 'admin');
    const isOfHalves = topic === HALF_TOPICS.open || topic === HALF_TOPICS.discarded;
    if (!isAdmin && !isOfHalves && !OWN_TOPICS.has(topic)) return roleNeededAnswer('admin', null);
    const which = key !== undefined ? { key } : id !== undefined ? { id } : fromOf(from);
    return ask(services, (views) =>
      listed(views, async () => {
        const messages = await views.messages(topic, which, limit);
        return isAdmin || !isOfHalves ? messages : { ...messages, items: messages.items.filter(isHalfOfOurs) };
      }),
    );
  },
});

const isHalfOfOurs = ({ properties }: FoundMessage): boolean => OWN_TOPICS.has(properties.REAL_TOPIC ?? '');

function fromOf({
  since,
  queue,
  offset,
}: {
  readonly since?: number | undefined;
  readonly queue?: number | undefined;
  readonly offset?: number | undefined;
}): BrowseFrom | null {
  if (since !== undefined) return { sinceMs: since };
  return queue === undefined || offset === undefined ? null : { queueId: queue, offset };
}

async function listed<T>(views: BrokerViews, look: () => Promise<BrokerList<T>>): Promise<Answer<200 | 'overloaded'>> {
  const list = await views.look(look);
  return list === null ? problem('overloaded', { detail: TOO_MANY }) : found(list);
}

export const resumeHalves = defineRoute({
  method: 'post',
  path: '/admin/v1/mq/halves/resume',
  label: 'admin',
  operationId: 'resumeHalves',
  summary:
    'Have the broker ask again about half messages of a key that it has given up, as `seckill mq resume` does. Each is in the' +
    ' audit log before the broker is asked.',
  access: 'operator',
  endpoint: null,
  body: jsonBody(z.strictObject({ key: z.string().min(1).max(NAME_MAX) })),
  answers: {
    200: { description: 'the broker asks about so many within seconds', schema: z.object({ resumed: count }) },
  },
  problems: [...PROBLEMS_OF_MQ, 'wrong_state', 'overloaded'],
  handle: ({ body: { key }, userId: actor }, services) =>
    ask(services, async (views): Promise<Answer<200> | Refused> => {
      const resumed = await views.look(async () => {
        const { found: given, inspection } = await views.toResume(key);
        const { halves, tooOld } = resumableOf(given);
        if (halves.length === 0) return notResumable(key, given, tooOld);
        for (const half of halves) await resumeHalf(half, actor, { inspection, audit: services.audit });
        return json(200, 'resumed', { resumed: halves.length });
      });
      return resumed ?? problem('overloaded', { detail: TOO_MANY });
    }),
});

function notResumable(key: string, found: readonly DiscardedHalf[], tooOld: number): Answer<'wrong_state'> {
  if (tooOld > 0) {
    return problem('wrong_state', {
      detail: 'It is older than three days: the broker would give it up again at once.',
    });
  }
  const why = found.length > 0 ? 'was resumed before, or is none of purchases' : 'is not among those that are kept';
  return problem('wrong_state', { detail: `What the brokers gave up of key ${key} ${why}.` });
}
