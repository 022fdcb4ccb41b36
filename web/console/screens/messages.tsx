import { useState } from 'preact/hooks';
import type { ComponentChildren } from 'preact';
import type {
  BrokerClient,
  Broker,
  DiscardedHalf,
  Message,
  ConsumerGroup,
  HalfMessage,
  MqList,
  MqStatus,
  Topic,
} from '../api/types.js';
import { may } from '../logic/permissions.js';
import { timeOf } from '../logic/query.js';
import { MESSAGE_TABS, pathOf } from '../logic/routes.js';
import {
  Ago,
  Badge,
  Button,
  Cut,
  Facts,
  Figure,
  Id,
  Link,
  Panel,
  SaleLink,
  ScreenHead,
  Tabs,
  Time,
} from '../parts/basics.js';
import { Confirm } from '../parts/confirm.js';
import { Dialog } from '../parts/dialog.js';
import { Check, Choice, TextField } from '../parts/fields.js';
import { Empty, Freshness, Note, Shown } from '../parts/states.js';
import { Table, type Column } from '../parts/table.js';
import { Code, readable } from '../parts/values.js';
import { useApp, useFilter, useResource, useWords, type Resource } from '../shell/hooks.js';
import { Webhooks } from './webhooks.js';

type Tab = (typeof MESSAGE_TABS)[number];
/** The broker's retention time. If a half message is older, the broker gives it up again at once. */
const RESUMED_MAX_AGE_MS = 72 * 3_600_000;
/** Age of the lag at which the figure turns red, because an alert then fires. */
const OLD_MS = 30_000;

/** Shows what RocketMQ holds: groups that lag, half messages without an answer, and messages of any topic. */
export function MessagesScreen({ tab }: { readonly tab: Tab }) {
  const { t } = useWords();
  return (
    <>
      <ScreenHead title={t.messages.title} />
      <Tabs
        label={t.messages.title}
        tabs={MESSAGE_TABS.map((one) => ({
          to: pathOf({ screen: 'messages', tab: one }),
          text: t.messages.tabs[one],
          current: one === tab,
        }))}
      />
      {tab === 'lag' && <Lag />}
      {tab === 'halves' && <Halves />}
      {tab === 'discarded' && <Discarded />}
      {tab === 'topics' && <Topics />}
      {tab === 'browse' && <Browse />}
      {tab === 'clients' && <Clients />}
      {tab === 'webhooks' && <Webhooks />}
    </>
  );
}

/** Shows the data, or why this API cannot say anything about RocketMQ. */
function Looked<T>({ of, children }: { readonly of: Resource<T>; readonly children: (data: T) => ComponentChildren }) {
  const { t } = useWords();
  if (of.data === null && of.error?.code === 'broker_not_configured')
    return <Empty title={t.messages.notConfigured} text={t.messages.notConfiguredText} icon="info" />;
  return <Shown of={of}>{children}</Shown>;
}

function BrokersDown({ down }: { readonly down: readonly Pick<Broker, 'name'>[] }) {
  const { t } = useWords();
  return down.length === 0 ? null : (
    <Note tone="warn">{t.messages.brokersDown(down.map(({ name }) => name).join(', '))}</Note>
  );
}

function Lag() {
  const { me } = useApp();
  const { t, f } = useWords();
  const [isAll, setAll] = useState(false);
  const status = useResource<MqStatus>('/admin/v1/mq/status', { everyMs: 5_000 });
  const groups = useResource<MqList<ConsumerGroup>>(isAll ? '/admin/v1/mq/groups' : null, {
    query: { all: true },
    everyMs: 5_000,
  });
  return (
    <>
      <Looked of={status}>
        {({ brokers, halves, discarded, deadLetters, groups: own }) => (
          <>
            <div class="figures">
              <Figure
                label={t.messages.lag}
                value={f.number(own.reduce((sum, { lag }) => sum + lag, 0))}
                hint={t.messages.lagHint}
                under={t.live.oldest(ageOf(own, f.duration))}
              />
              <Figure
                label={t.messages.tabs.halves}
                value={<Link to={pathOf({ screen: 'messages', tab: 'halves' })}>{f.number(halves.open)}</Link>}
                under={halves.oldestMs === null ? undefined : t.live.oldest(f.duration(halves.oldestMs))}
                {...(halves.oldestMs !== null && halves.oldestMs > 60_000 && { tone: 'bad' as const })}
              />
              <Figure
                label={t.messages.tabs.discarded}
                value={<Link to={pathOf({ screen: 'messages', tab: 'discarded' })}>{f.number(discarded)}</Link>}
                {...(discarded > 0 && { tone: 'warn' as const })}
              />
              <Figure
                label={t.messages.deadLetterTopics}
                value={f.number(deadLetters.reduce((sum, { kept }) => sum + kept, 0))}
              />
              <Figure
                label={t.messages.brokers}
                value={`${f.number(brokers.filter(({ down }) => down === null).length)} / ${f.number(brokers.length)}`}
                {...(brokers.some(({ down }) => down !== null) && { tone: 'bad' as const })}
              />
            </div>
            <Panel
              title={t.messages.tabs.lag}
              hint={t.messages.lagHint}
              flush
              actions={
                <>
                  {may(me.role, 'admin') && <Check label={t.messages.allGroups} checked={isAll} onChange={setAll} />}
                  <Freshness {...(isAll ? groups : status)} />
                </>
              }
            >
              {isAll ? (
                <Looked of={groups}>
                  {(list) => (
                    <>
                      <BrokersDown down={list.down} />
                      <Groups groups={list.items} />
                    </>
                  )}
                </Looked>
              ) : (
                <Groups groups={own} />
              )}
            </Panel>
            <Panel title={t.messages.brokers} flush>
              <BrokerTable brokers={brokers} />
            </Panel>
          </>
        )}
      </Looked>
    </>
  );
}

const ageOf = (groups: readonly ConsumerGroup[], write: (ms: number) => string): string => {
  const oldest = Math.max(0, ...groups.map(({ oldestMs }) => oldestMs ?? 0));
  return oldest === 0 ? '–' : write(oldest);
};

function Groups({ groups }: { readonly groups: readonly ConsumerGroup[] }) {
  const { t, f } = useWords();
  const most = Math.max(1, ...groups.map(({ lag }) => lag));
  const sorted = [...groups].sort((a, b) => b.lag - a.lag || (b.oldestMs ?? 0) - (a.oldestMs ?? 0));
  const columns: readonly Column<ConsumerGroup>[] = [
    {
      name: t.common.group,
      cell: ({ group, topic }) => (
        <>
          <Cut text={group} as="code" />
          <code class="cut faint shows-phone">{topic}</code>
        </>
      ),
      sort: ({ group }) => group,
    },
    {
      name: t.common.topic,
      hides: 'phone',
      cell: ({ topic }) => <Cut text={topic} as="code" />,
      sort: ({ topic }) => topic,
    },
    {
      name: t.messages.lag,
      isNumber: true,
      width: '170px',
      phoneWidth: '64px',
      hint: t.messages.lagHint,
      sort: ({ lag }) => lag,
      cell: ({ lag }) => (
        <span class="bar-cell">
          <i style={{ width: `${(lag / most) * 100}%` }} />
          <b class="number">{f.number(lag)}</b>
        </span>
      ),
    },
    {
      name: t.messages.oldest,
      isNumber: true,
      width: '100px',
      phoneWidth: '70px',
      sort: ({ oldestMs }) => oldestMs,
      cell: ({ oldestMs }) =>
        oldestMs === null ? (
          <span class="faint">–</span>
        ) : (
          <span class={oldestMs > OLD_MS ? 'bad-text' : ''}>{f.duration(oldestMs)}</span>
        ),
    },
    {
      name: t.messages.clients,
      isNumber: true,
      width: '90px',
      hides: 'phone',
      sort: ({ clients }) => clients,
      cell: ({ clients }) => (clients === 0 ? <Badge tone="warn">0</Badge> : f.number(clients)),
    },
  ];
  return (
    <Table
      label={t.messages.tabs.lag}
      columns={columns}
      rows={sorted}
      keyOf={({ group, topic }) => `${group} ${topic}`}
      empty={<Empty title={t.messages.noGroups} icon="messages" />}
    />
  );
}

export function BrokerTable({ brokers }: { readonly brokers: readonly Broker[] }) {
  const { t, f } = useWords();
  const columns: readonly Column<Broker>[] = [
    { name: t.messages.broker, cell: ({ name }) => <b>{name}</b> },
    { name: t.messages.address, hides: 'phone', cell: ({ address }) => <Id text={address} /> },
    {
      name: t.common.state,
      cell: ({ down }) =>
        down === null ? (
          <Badge tone="ok">{t.messages.up}</Badge>
        ) : (
          <Badge tone="bad" title={down}>
            {t.messages.down}
          </Badge>
        ),
    },
    { name: t.messages.version, hides: 'narrow', cell: ({ version }) => version || '–' },
    {
      name: t.messages.storedPerSecond,
      isNumber: true,
      cell: ({ down, putPerSecond }) => (down === null ? f.tenths(putPerSecond) : '–'),
    },
    {
      name: t.messages.readPerSecond,
      isNumber: true,
      hides: 'phone',
      cell: ({ down, getPerSecond }) => (down === null ? f.tenths(getPerSecond) : '–'),
    },
    {
      name: t.messages.disk,
      isNumber: true,
      hides: 'phone',
      cell: ({ down, diskUsed }) => (down === null ? f.percent(diskUsed) : '–'),
    },
  ];
  return <Table label={t.messages.brokers} columns={columns} rows={brokers} keyOf={({ address }) => address} />;
}

function halfColumns<T extends HalfMessage>(
  t: ReturnType<typeof useWords>['t'],
  f: ReturnType<typeof useWords>['f'],
): Column<T>[] {
  return [
    { name: t.common.batch, cell: ({ key }) => <Id text={key} to={pathOf({ screen: 'purchases', id: key })} /> },
    {
      name: t.common.sale,
      hides: 'phone',
      width: '90px',
      cell: ({ saleId }) => <SaleLink saleId={saleId} />,
    },
    {
      name: t.messages.purchases,
      isNumber: true,
      width: '100px',
      hides: 'phone',
      cell: ({ purchases }) => (purchases === null ? '–' : f.number(purchases)),
      sort: ({ purchases }) => purchases,
    },
    { name: t.common.topic, hides: 'narrow', cell: ({ topic }) => <Cut text={topic} as="code" /> },
  ];
}

function Halves() {
  const { t, f } = useWords();
  const halves = useResource<MqList<HalfMessage>>('/admin/v1/mq/halves', { everyMs: 4_000 });
  const columns: readonly Column<HalfMessage>[] = [
    {
      name: t.messages.age,
      isNumber: true,
      width: '110px',
      phoneWidth: '80px',
      cell: ({ ageMs }) => <span class={ageMs > 60_000 ? 'bad-text' : ''}>{f.duration(ageMs)}</span>,
      sort: ({ ageMs }) => ageMs,
    },
    {
      name: t.messages.checks,
      isNumber: true,
      width: '90px',
      hint: t.messages.checksHint,
      cell: ({ checks }) => f.number(checks),
      sort: ({ checks }) => checks,
    },
    ...halfColumns<HalfMessage>(t, f),
  ];
  return (
    <Panel title={t.messages.tabs.halves} flush actions={<Freshness {...halves} />}>
      <Looked of={halves}>
        {({ items, more, down }) => (
          <>
            <BrokersDown down={down} />
            {more && <Note tone="warn">{t.messages.halvesMore}</Note>}
            <Table
              label={t.messages.tabs.halves}
              columns={columns}
              rows={items}
              keyOf={({ broker, messageId, key }) => `${broker} ${messageId} ${key}`}
              empty={<Empty title={t.messages.noHalves} text={t.messages.noHalvesText} />}
            />
          </>
        )}
      </Looked>
    </Panel>
  );
}

function Discarded() {
  const { api, me } = useApp();
  const { t, f } = useWords();
  const read = useResource<MqList<DiscardedHalf>>('/admin/v1/mq/halves/discarded', { everyMs: 10_000 });
  const [picked, setPicked] = useState<DiscardedHalf | null>(null);
  const columns: readonly Column<DiscardedHalf>[] = [
    {
      name: t.messages.discardedAt,
      width: '150px',
      phoneWidth: '116px',
      cell: ({ discardedAtMs }) => <Time at={discardedAtMs} />,
      sort: ({ discardedAtMs }) => discardedAtMs,
    },
    {
      name: t.messages.resumedAt,
      width: '150px',
      hides: 'phone',
      cell: ({ resumedAtMs }) => <Time at={resumedAtMs} />,
      sort: ({ resumedAtMs }) => resumedAtMs,
    },
    ...halfColumns<DiscardedHalf>(t, f),
    ...(may(me.role, 'operator')
      ? [
          {
            name: t.common.action,
            width: '120px',
            phoneWidth: '104px',
            cell: (half: DiscardedHalf) =>
              half.resumedAtMs === null &&
              half.topic === 'seckill-purchase' && (
                <Button
                  onClick={() => setPicked(half)}
                  disabled={half.ageMs >= RESUMED_MAX_AGE_MS}
                  {...(half.ageMs >= RESUMED_MAX_AGE_MS && { title: t.messages.resumeTooOld })}
                >
                  {t.messages.resume}
                </Button>
              ),
          },
        ]
      : []),
  ];
  const resume = async (half: DiscardedHalf): Promise<string> => {
    const { resumed } = await api.ask<{ resumed: number }>('/admin/v1/mq/halves/resume', {
      method: 'POST',
      body: { key: half.key },
    });
    return t.messages.resumed(f.number(resumed));
  };
  return (
    <Panel title={t.messages.tabs.discarded} flush actions={<Freshness {...read} />}>
      <Looked of={read}>
        {({ items, more, down }) => (
          <>
            <BrokersDown down={down} />
            <Table
              label={t.messages.tabs.discarded}
              columns={columns}
              rows={items}
              keyOf={({ offsetId }) => offsetId}
              empty={<Empty title={t.messages.noDiscarded} text={t.messages.noDiscardedText} />}
            />
            {more && <p class="panel-foot">{t.common.moreRows}</p>}
          </>
        )}
      </Looked>
      {picked && (
        <Confirm
          title={t.messages.resumeTitle}
          text={t.messages.resumeText}
          verb={t.messages.resume}
          run={() => resume(picked)}
          audit={{ subject: `half_message:${picked.key}` }}
          onClose={() => setPicked(null)}
          onDone={read.reload}
        >
          <Facts
            facts={[
              [t.common.batch, <Id text={picked.key} />],
              [t.common.sale, picked.saleId ?? '–'],
              [t.messages.purchases, picked.purchases === null ? '–' : f.number(picked.purchases)],
              [t.messages.age, f.duration(picked.ageMs)],
              [t.messages.discardedAt, <Time at={picked.discardedAtMs} />],
            ]}
          />
        </Confirm>
      )}
    </Panel>
  );
}

function Topics() {
  const { t, f } = useWords();
  const topics = useResource<MqList<Topic>>('/admin/v1/mq/topics', { everyMs: 10_000 });
  const columns: readonly Column<Topic>[] = [
    {
      name: t.common.topic,
      cell: ({ topic }) => (
        <Link to={`${pathOf({ screen: 'messages', tab: 'browse' })}?topic=${encodeURIComponent(topic)}&way=newest`}>
          <Cut text={topic} as="code" />
        </Link>
      ),
      sort: ({ topic }) => topic,
    },
    {
      name: t.messages.type,
      hides: 'phone',
      width: '140px',
      cell: ({ type }) => type || '–',
      sort: ({ type }) => type,
    },
    {
      name: t.messages.queues,
      isNumber: true,
      hides: 'phone',
      width: '90px',
      cell: ({ queues }) => f.number(queues),
      sort: ({ queues }) => queues,
    },
    {
      name: t.messages.kept,
      isNumber: true,
      width: '110px',
      cell: ({ kept }) => f.number(kept),
      sort: ({ kept }) => kept,
    },
    {
      name: t.messages.newest,
      hides: 'narrow',
      width: '150px',
      cell: ({ lastStoredAtMs }) =>
        lastStoredAtMs === null ? <span class="faint">–</span> : <Ago at={lastStoredAtMs} />,
      sort: ({ lastStoredAtMs }) => lastStoredAtMs,
    },
  ];
  return (
    <Panel title={t.messages.tabs.topics} flush actions={<Freshness {...topics} />}>
      <Looked of={topics}>
        {({ items, down }) => (
          <>
            <BrokersDown down={down} />
            <Table
              label={t.messages.tabs.topics}
              columns={columns}
              rows={items}
              keyOf={({ topic }) => topic}
              empty={<Empty title={t.messages.noTopics} icon="messages" />}
            />
          </>
        )}
      </Looked>
    </Panel>
  );
}

const WAYS = ['newest', 'key', 'id', 'since', 'place'] as const;
type Way = (typeof WAYS)[number];
const FIELDS = ['topic', 'way', 'key', 'id', 'since', 'queue', 'offset', 'limit'] as const;
const DEFAULT_TOPIC = 'seckill-purchase';

function Browse() {
  const { t } = useWords();
  const [asked, setAsked] = useFilter(FIELDS);
  const [typed, setTyped] = useState<Readonly<Record<string, string>>>({});
  const topics = useResource<MqList<Topic>>('/admin/v1/mq/topics');
  const valueOf = (name: (typeof FIELDS)[number]): string => typed[name] ?? asked[name];
  const set = (name: string) => (text: string) => setTyped({ ...typed, [name]: text });
  const way = (WAYS.find((one) => one === valueOf('way')) ?? 'newest') as Way;
  const topic = valueOf('topic') || DEFAULT_TOPIC;
  const since = timeOf(valueOf('since'), Date.now());
  const show = (): void => {
    if (way === 'since' && since === null) return;
    const kept = {
      key: [way === 'key', 'key'],
      id: [way === 'id', 'id'],
      queue: [way === 'place', 'queue'],
      offset: [way === 'place', 'offset'],
    } as const;
    setAsked({
      topic,
      way,
      since: way === 'since' ? (since ?? '') : '',
      limit: valueOf('limit'),
      ...Object.fromEntries(
        Object.entries(kept).map(([name, [isUsed, field]]) => [name, isUsed ? valueOf(field).trim() : '']),
      ),
    });
    setTyped({});
  };
  const names = [...new Set([topic, ...(topics.data?.items.map((one) => one.topic) ?? [DEFAULT_TOPIC])])];
  return (
    <>
      <Panel>
        <form
          class="filter bare"
          role="search"
          onSubmit={(event) => {
            event.preventDefault();
            show();
          }}
        >
          <Choice
            label={t.common.topic}
            value={topic}
            options={names.map((name) => [name, name] as const)}
            onPick={set('topic')}
          />
          <Choice
            label={t.messages.by}
            value={way}
            options={WAYS.map((one) => [one, t.messages.ways[one]] as const)}
            onPick={set('way')}
          />
          {way === 'key' && <TextField label={t.common.key} value={valueOf('key')} onInput={set('key')} isCode />}
          {way === 'id' && <TextField label={t.messages.messageId} value={valueOf('id')} onInput={set('id')} isCode />}
          {way === 'since' && (
            <TextField
              label={t.common.since}
              value={valueOf('since')}
              onInput={set('since')}
              placeholder="10m"
              error={since === null ? t.common.badTime : undefined}
            />
          )}
          {way === 'place' && (
            <TextField label={t.messages.queue} type="number" value={valueOf('queue')} onInput={set('queue')} />
          )}
          {way === 'place' && (
            <TextField label={t.messages.offset} type="number" value={valueOf('offset')} onInput={set('offset')} />
          )}
          <TextField
            label={t.messages.limit}
            type="number"
            value={valueOf('limit')}
            placeholder="20"
            onInput={set('limit')}
          />
          <div class="filter-buttons">
            <button type="submit" class="button main">
              {t.messages.show}
            </button>
          </div>
        </form>
      </Panel>
      {asked.way === '' ? (
        <Panel>
          <Empty title={t.messages.pick} icon="search" />
        </Panel>
      ) : (
        <FoundMessages asked={asked} />
      )}
    </>
  );
}

function FoundMessages({ asked }: { readonly asked: Readonly<Record<(typeof FIELDS)[number], string>> }) {
  const { t, f } = useWords();
  const { way: _way, topic, ...query } = asked;
  const found = useResource<MqList<Message>>('/admin/v1/mq/messages', {
    query: { ...query, topic: topic || DEFAULT_TOPIC },
  });
  const [open, setOpen] = useState<Message | null>(null);
  const columns: readonly Column<Message>[] = [
    {
      name: t.messages.stored,
      width: '150px',
      cell: ({ storedAtMs }) => <Time at={storedAtMs} ms />,
      sort: ({ storedAtMs }) => storedAtMs,
    },
    { name: t.common.key, width: '24%', cell: ({ properties }) => <Id text={properties.KEYS} /> },
    {
      name: t.messages.queue,
      isNumber: true,
      hides: 'phone',
      width: '90px',
      cell: ({ queueId }) => f.number(queueId),
      sort: ({ queueId }) => queueId,
    },
    {
      name: t.messages.offset,
      isNumber: true,
      hides: 'phone',
      width: '100px',
      cell: ({ queueOffset }) => f.number(queueOffset),
      sort: ({ queueOffset }) => queueOffset,
    },
    {
      name: t.messages.givenBefore,
      isNumber: true,
      hides: 'narrow',
      width: '110px',
      cell: ({ deliveries }) => f.number(deliveries),
    },
    { name: t.messages.body, hides: 'narrow', cell: ({ body }) => <Cut text={body.slice(0, 200)} as="code" faint /> },
  ];
  return (
    <Panel title={t.messages.message} flush actions={<Freshness {...found} />}>
      <Looked of={found}>
        {({ items, more, down }) => (
          <>
            <BrokersDown down={down} />
            <Table
              label={t.messages.message}
              columns={columns}
              rows={items}
              keyOf={({ offsetId }) => offsetId}
              onOpen={setOpen}
              isOpen={(one) => one === open}
              empty={<Empty title={t.messages.noMessages} text={t.messages.noMessagesText} icon="messages" />}
            />
            {more && <p class="panel-foot">{t.common.moreRows}</p>}
          </>
        )}
      </Looked>
      {open && <MessageDialog message={open} onClose={() => setOpen(null)} />}
    </Panel>
  );
}

function MessageDialog({ message, onClose }: { readonly message: Message; readonly onClose: () => void }) {
  const { t, f } = useWords();
  const { topic, broker, queueId, queueOffset, offsetId, bornAtMs, storedAtMs, deliveries, body, properties } = message;
  const key = properties.KEYS ?? '';
  return (
    <Dialog title={t.messages.message} onClose={onClose} shape="side">
      <Facts
        facts={[
          [t.common.key, key === '' ? '–' : <Id text={key} to={pathOf({ screen: 'purchases', id: key })} />],
          [t.common.topic, <code>{topic}</code>],
          [t.messages.broker, broker],
          [t.messages.queue, f.number(queueId)],
          [t.messages.offset, f.number(queueOffset)],
          [t.messages.born, <Time at={bornAtMs} ms />],
          [t.messages.stored, <Time at={storedAtMs} ms />],
          [t.messages.givenBefore, f.number(deliveries)],
          [t.messages.messageId, <Id text={properties.UNIQ_KEY ?? offsetId} />],
        ]}
      />
      <h3>{t.messages.body}</h3>
      <Code text={readable(body)} label={t.messages.body} />
      <h3>{t.messages.properties}</h3>
      <Facts
        facts={Object.entries(properties).map(([name, value]) => [name, <code class="breaks">{value}</code>] as const)}
      />
    </Dialog>
  );
}

/** Group shown at first. The user can type any other one. */
const DEFAULT_GROUP = 'seckill-order-writer';

function Clients() {
  const { t } = useWords();
  const [{ group }, setFilter] = useFilter(['group'] as const);
  const status = useResource<MqStatus>('/admin/v1/mq/status');
  const producers = useResource<MqList<BrokerClient>>('/admin/v1/mq/producers', { everyMs: 10_000 });
  const wanted = group || DEFAULT_GROUP;
  const consumers = useResource<MqList<BrokerClient>>('/admin/v1/mq/consumers', {
    query: { group: wanted },
    everyMs: 10_000,
  });
  const groups = [...new Set([wanted, ...(status.data?.groups.map((one) => one.group) ?? [])])].sort();
  const columns = (isProducer: boolean): readonly Column<BrokerClient>[] => [
    {
      name: t.messages.client,
      cell: ({ clientId }) => <Id text={clientId} />,
    },
    ...(isProducer
      ? [{ name: t.common.topic, cell: ({ group: topic }: BrokerClient) => <Cut text={topic ?? null} as="code" /> }]
      : []),
    { name: t.messages.address, hides: 'phone', cell: ({ address }) => <Id text={address} /> },
    { name: t.messages.language, hides: 'narrow', width: '110px', cell: ({ language }) => language },
  ];
  return (
    <div class="halves">
      <Panel title={t.messages.producers} flush actions={<Freshness {...producers} />}>
        <Looked of={producers}>
          {({ items, down }) => (
            <>
              <BrokersDown down={down} />
              <Table
                label={t.messages.producers}
                columns={columns(true)}
                rows={items}
                keyOf={({ clientId, group: topic }) => `${clientId} ${topic}`}
                empty={<Empty title={t.messages.noClients} icon="info" />}
              />
            </>
          )}
        </Looked>
      </Panel>
      <Panel title={t.messages.consumers} flush actions={<Freshness {...consumers} />}>
        <div class="filter">
          <Choice
            label={t.common.group}
            value={wanted}
            options={groups.map((name) => [name, name] as const)}
            onPick={(picked) => setFilter({ group: picked })}
          />
        </div>
        <Looked of={consumers}>
          {({ items, down }) => (
            <>
              <BrokersDown down={down} />
              <Table
                label={t.messages.consumers}
                columns={columns(false)}
                rows={items}
                keyOf={({ clientId }) => clientId}
                empty={<Empty title={t.messages.noClients} icon="info" />}
              />
            </>
          )}
        </Looked>
      </Panel>
    </div>
  );
}
