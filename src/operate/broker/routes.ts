import { z } from 'zod';
import {
  consumers,
  discardedHalves,
  groups,
  halves,
  messages,
  mqStatus,
  producers,
  resumedHalves,
  topics,
  type DiscardedHalf,
  type Message,
  type MqList,
} from '../../contract/broker.js';
import { queryText, queryTime, queryWhole, queryWord } from '../../contract/fields.js';
import { OperationalError } from '../../core/errors.js';
import { includesRole } from '../../core/roles.js';
import { HALF_TOPICS, OWN_TOPICS, TOPICS } from '../../core/topics.js';
import { roleNeededAnswer } from '../../http/admission-answers.js';
import { json, problem, type Answer } from '../../http/answer.js';
import { jsonBody, operatorRoute, type Route } from '../../http/route.js';
import type { BrokerViews } from './broker-views.js';
import { browseFrom, OWN_GROUPS } from './message-inspection.js';
import { resumableOf, resumeHalf } from './resume-halves.js';
import type { BrokerServices } from './services.js';

/** Shows the same as `seckill mq … --json`, only to admins, because other systems may share the cluster. */

const MESSAGES_MAX = 100;
const MESSAGES_DEFAULT = 20;
const DISCARDED_MAX = 200;
const NAME_MAX = 255;
const QUEUE_MAX = 65_535;

const NO_NAME_SERVER = 'This api has no RocketMQ name server configured. Set NAMESRV_ADDR.';
const TOO_MANY = 'This api already handles other requests to RocketMQ. Try again.';

const PROBLEMS_OF_MQ = ['broker_not_configured'] as const;
type Refused = Answer<'broker_not_configured' | 'unavailable' | 'overloaded' | 'wrong_state'>;

/** Answers a fault with the name of the server that does not answer, because operators need to know it. */
async function ask<A extends Answer>(
  { mq }: BrokerServices,
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

const readMqStatus = operatorRoute({
  method: 'get',
  path: '/admin/v1/mq/status',
  operationId: 'readMqStatus',
  summary: 'Summarizes RocketMQ: brokers, consumer groups with their lag, dead letters, half messages and producers.',
  access: 'viewer',
  answers: {
    200: {
      description: 'data of the brokers that answer; `brokers[].down` says why the others do not',
      schema: mqStatus,
    },
  },
  problems: PROBLEMS_OF_MQ,
  handle: (_call, services: BrokerServices) => ask(services, async (views) => found(await views.status())),
});

const listMqGroups = operatorRoute({
  method: 'get',
  path: '/admin/v1/mq/groups',
  operationId: 'listMqGroups',
  summary:
    'Lists consumer groups and their lag, largest first. `all` includes groups of other systems and needs the role admin.',
  access: 'viewer',
  query: z.strictObject({ all: queryWord(['true', 'false']).default('false') }),
  answers: { 200: { description: 'the groups', schema: groups } },
  problems: PROBLEMS_OF_MQ,
  handle({ query, roles }, services: BrokerServices) {
    const isAll = query.all === 'true';
    if (isAll && !includesRole(roles, 'admin')) return roleNeededAnswer('admin', null);
    return ask(services, async (views) => found(await (isAll ? views.allGroups() : views.ownGroups())));
  },
});

const listMqTopics = operatorRoute({
  method: 'get',
  path: '/admin/v1/mq/topics',
  operationId: 'listMqTopics',
  summary: 'Lists topics and their number of messages.',
  access: 'viewer',
  answers: { 200: { description: 'the topics', schema: topics } },
  problems: PROBLEMS_OF_MQ,
  handle: (_call, services: BrokerServices) => ask(services, async (views) => found(await views.topics())),
});

const listHalves = operatorRoute({
  method: 'get',
  path: '/admin/v1/mq/halves',
  operationId: 'listHalves',
  summary: 'Lists half messages without a commit or rollback, oldest first.',
  access: 'viewer',
  answers: { 200: { description: 'the half messages', schema: halves } },
  problems: PROBLEMS_OF_MQ,
  handle: (_call, services: BrokerServices) => ask(services, async (views) => found(await views.halves())),
});

const listDiscardedHalves = operatorRoute({
  method: 'get',
  path: '/admin/v1/mq/halves/discarded',
  operationId: 'listDiscardedHalves',
  summary:
    'Lists half messages that the broker has given up on, newest first: those with a key, or the newest `limit`.',
  access: 'viewer',
  query: z.strictObject({
    key: queryText(NAME_MAX).optional(),
    limit: queryWhole(1, DISCARDED_MAX).default(MESSAGES_DEFAULT),
  }),
  answers: { 200: { description: 'the half messages', schema: discardedHalves } },
  problems: [...PROBLEMS_OF_MQ, 'overloaded'],
  handle: ({ query: { key, limit } }, services: BrokerServices) =>
    ask(services, (views) => listed(views, () => views.discarded(key === undefined ? { max: limit } : { key }))),
});

const listMqProducers = operatorRoute({
  method: 'get',
  path: '/admin/v1/mq/producers',
  operationId: 'listMqProducers',
  summary: 'Lists clients that answer check-backs.',
  access: 'viewer',
  answers: {
    200: {
      description: 'the clients; `group` is the topic',
      schema: producers,
    },
  },
  problems: PROBLEMS_OF_MQ,
  handle: (_call, services: BrokerServices) => ask(services, async (views) => found(await views.producers())),
});

const listMqConsumers = operatorRoute({
  method: 'get',
  path: '/admin/v1/mq/consumers',
  operationId: 'listMqConsumers',
  summary: 'Lists clients of a consumer group. A group of another system needs the role admin.',
  access: 'viewer',
  query: z.strictObject({ group: queryText(NAME_MAX) }),
  answers: { 200: { description: 'the clients', schema: consumers } },
  problems: [...PROBLEMS_OF_MQ, 'overloaded'],
  handle({ query, roles }, services: BrokerServices) {
    const isOurs = OWN_GROUPS.some(({ group: name }) => name === query.group);
    if (!isOurs && !includesRole(roles, 'admin')) return roleNeededAnswer('admin', null);
    return ask(services, (views) => listed(views, () => views.consumers(query.group)));
  },
});

const listMessages = operatorRoute({
  method: 'get',
  path: '/admin/v1/mq/messages',
  operationId: 'listMessages',
  summary:
    'Lists messages of a topic with bodies and properties, oldest first: by key, by id, from a time, from a queue offset, or the' +
    ' newest. A topic of another system needs the role admin. All systems share the topic of half messages: other roles see' +
    ' only those of Seckill there.',
  access: 'viewer',
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
      error: 'must be given together with queue',
      path: ['offset'],
    })
    .refine(({ key, id, since, queue }) => [key, id, since, queue].filter((way) => way !== undefined).length <= 1, {
      error: 'must not be combined: give only one of key, id, since, or queue with offset',
      path: ['key'],
    }),
  answers: {
    200: {
      description: 'the messages; `more` is true if others match or their bodies do not fit into one response',
      schema: messages,
    },
  },
  problems: [...PROBLEMS_OF_MQ, 'overloaded'],
  handle({ query: { topic, key, id, limit, ...from }, roles }, services: BrokerServices) {
    const isAdmin = includesRole(roles, 'admin');
    const isOfHalves = topic === HALF_TOPICS.open || topic === HALF_TOPICS.discarded;
    if (!isAdmin && !isOfHalves && !OWN_TOPICS.has(topic)) return roleNeededAnswer('admin', null);
    const which = key !== undefined ? { key } : id !== undefined ? { id } : browseFrom(from);
    return ask(services, (views) =>
      listed(views, async () => {
        const found = await views.messages(topic, which, limit);
        return isAdmin || !isOfHalves ? found : { ...found, items: found.items.filter(isHalfOfOurs) };
      }),
    );
  },
});

const isHalfOfOurs = ({ properties }: Message): boolean => OWN_TOPICS.has(properties.REAL_TOPIC ?? '');

async function listed<T>(views: BrokerViews, look: () => Promise<MqList<T>>): Promise<Answer<200 | 'overloaded'>> {
  const list = await views.look(look);
  return list === null ? problem('overloaded', { detail: TOO_MANY }) : found(list);
}

const resumeHalves = operatorRoute({
  method: 'post',
  path: '/admin/v1/mq/halves/resume',
  operationId: 'resumeHalves',
  summary:
    'Makes the broker check back again for half messages of a key that it had given up on, as `seckill mq resume`' +
    ' does. The audit log records each first.',
  access: 'operator',
  body: jsonBody(z.strictObject({ key: z.string().min(1).max(NAME_MAX) })),
  answers: {
    200: { description: 'number of half messages that the broker will check within seconds', schema: resumedHalves },
  },
  problems: [...PROBLEMS_OF_MQ, 'wrong_state', 'overloaded'],
  handle: ({ body: { key }, userId: actor }, services: BrokerServices) =>
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
      detail: 'It is older than three days, so the broker would give up on it again at once.',
    });
  }
  const why = found.length > 0 ? 'was already resumed, or does not belong to purchases' : 'is no longer kept';
  return problem('wrong_state', { detail: `The half message of key ${key} ${why}.` });
}

export const brokerRoutes: readonly Route<BrokerServices>[] = [
  readMqStatus,
  listMqGroups,
  listMqTopics,
  listHalves,
  listDiscardedHalves,
  resumeHalves,
  listMqProducers,
  listMqConsumers,
  listMessages,
];
