import { useEffect, useState } from 'preact/hooks';
import type { FoundOrder, Trace, TraceStep } from '../api/types.js';
import { wordIn } from '../i18n/language.js';
import { cleaned } from '../logic/look-up.js';
import { queryOf } from '../logic/query.js';
import { pathOf } from '../logic/routes.js';
import { namedIn, stageLines, tookMs, type StageLine } from '../logic/time-line.js';
import { Button, Cut, Facts, Id, Link, Panel, SaleLink, ScreenHead, Time } from '../parts/basics.js';
import { Choice, TextField } from '../parts/fields.js';
import { Icon, type IconName } from '../parts/icons.js';
import { Empty, Failure, Freshness, Loading, Note } from '../parts/states.js';
import { Table, type Column } from '../parts/table.js';
import { PurchaseState } from '../parts/words.js';
import { OrderAmount, OrderPanel } from './order-panel.js';
import { navigate, useFilter, useNow, usePages, useResource, useWords, type Resource } from '../shell/hooks.js';

type Way = 'id' | 'user';

/** Finds purchases by any id, and shows the life of each as a time line. */
export function PurchasesScreen({ id }: { readonly id: string | null }) {
  const { t } = useWords();
  const [{ user, saleId, buyer }] = useFilter(['user', 'saleId', 'buyer'] as const);
  return (
    <>
      <ScreenHead title={t.purchases.title} />
      <SearchForm key={`${id} ${user}`} id={id ?? ''} user={user} saleId={saleId} buyer={buyer} />
      {id !== null ? (
        <Found key={id} id={id} saleId={saleId} buyer={buyer} />
      ) : user !== '' ? (
        <OrdersOf key={user} user={user} />
      ) : (
        <Panel>
          <Empty title={t.purchases.start} text={t.purchases.startText} icon="search" />
        </Panel>
      )}
    </>
  );
}

function SearchForm({
  id,
  user,
  saleId,
  buyer,
}: {
  readonly id: string;
  readonly user: string;
  readonly saleId: string;
  readonly buyer: string;
}) {
  const { t } = useWords();
  const [way, setWay] = useState<Way>(user === '' ? 'id' : 'user');
  const [text, setText] = useState(user === '' ? id : user);
  const [sale, setSale] = useState(saleId);
  const [by, setBy] = useState(buyer);
  const find = (): void => {
    const what = cleaned(text);
    if (what === '') return;
    if (way === 'user')
      navigate(pathOf({ screen: 'purchases', id: null }) + queryOf({ user: what, saleId: sale.trim() }));
    else navigate(pathOf({ screen: 'purchases', id: what }) + queryOf({ saleId: sale.trim(), buyer: by.trim() }));
  };
  return (
    <Panel>
      <form
        class="find"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          find();
        }}
      >
        <div class="find-main">
          <TextField
            label={t.purchases.field}
            value={text}
            onInput={setText}
            placeholder={t.purchases.placeholder}
            type="search"
            isCode
          />
          <Choice
            label={t.messages.by}
            value={way}
            options={[
              ['id', t.shell.searchKinds.purchase],
              ['user', t.common.user],
            ]}
            onPick={setWay}
          />
          <button type="submit" class="button main">
            <Icon name="search" />
            {t.purchases.find}
          </button>
        </div>
        <details open={saleId !== '' || buyer !== ''}>
          <summary>{t.purchases.narrow}</summary>
          <div class="form-grid">
            <TextField label={t.reconcile.saleId} value={sale} onInput={setSale} />
            {way === 'id' && <TextField label={t.common.user} value={by} onInput={setBy} />}
          </div>
        </details>
        <p class="hint">{t.purchases.hint}</p>
      </form>
    </Panel>
  );
}

interface FoundPurchases {
  readonly purchases: readonly Trace[];
  readonly more: boolean;
}

const pathOfRequest = (id: string): string => `/admin/v1/requests/${encodeURIComponent(id)}`;
const keyOf = ({ saleId, userId, requestId }: Trace): string => `${saleId} ${userId} ${requestId}`;

/**
 * Shows the result of a search. A search may read every store, especially if it finds nothing, so it is not repeated on
 * its own.
 */
function Found({ id, saleId, buyer }: { readonly id: string; readonly saleId: string; readonly buyer: string }) {
  const { t, f } = useWords();
  const found = useResource<FoundPurchases>(pathOfRequest(id), { query: { saleId, userId: buyer } });
  const [picked, setPicked] = useState<string | null>(null);
  if (found.data === null) {
    if (found.error === null)
      return (
        <Panel>
          <Loading rows={8} />
        </Panel>
      );
    if (found.error.status !== 404)
      return (
        <Panel>
          <Failure error={found.error} onRetry={found.reload} />
        </Panel>
      );
    return (
      <Panel>
        <Empty title={t.purchases.notFound} icon="search">
          <p class="blank-text" lang="en">
            {found.error.message}
          </p>
          <Link to={pathOf({ screen: 'purchases', id: null }) + queryOf({ user: id })} class="button plain">
            {t.shell.searchKinds.user}
          </Link>
        </Empty>
      </Panel>
    );
  }
  const { purchases, more } = found.data;
  const shown = purchases.length === 1 ? purchases[0] : purchases.find((one) => keyOf(one) === picked);
  const columns: readonly Column<Trace>[] = [
    { name: t.common.state, width: '150px', cell: ({ state }) => <PurchaseState state={state} /> },
    { name: t.common.user, cell: ({ userId }) => <Id text={userId} /> },
    { name: t.common.sale, width: '90px', cell: ({ saleId: sale }) => <code>{sale}</code> },
    { name: t.common.request, hides: 'phone', cell: ({ requestId }) => <Id text={requestId} /> },
    {
      name: t.purchases.next,
      hides: 'narrow',
      width: '44%',
      cell: ({ sentence }) => <Cut text={sentence} lang="en" />,
    },
  ];
  return (
    <>
      {purchases.length > 1 && (
        <Panel title={t.purchases.several(f.number(purchases.length))} flush actions={<Freshness {...found} />}>
          <Table
            label={t.purchases.title}
            columns={columns}
            rows={purchases}
            keyOf={keyOf}
            nameOf={({ userId }) => userId}
            onOpen={(one) => setPicked(keyOf(one))}
            isOpen={(one) => keyOf(one) === picked}
          />
          {more && <p class="panel-foot">{t.purchases.moreThanShown}</p>}
        </Panel>
      )}
      {shown && <Followed key={keyOf(shown)} purchase={shown} found={found} />}
    </>
  );
}

/**
 * How often a purchase is read again. Each read goes to every store, so reads are less frequent once there is an order.
 */
const [UNDECIDED_EVERY_MS, ORDERED_EVERY_MS] = [3_000, 20_000];

/**
 * Reads a purchase repeatedly by its own key, which the stores have indexed. A purchase that this read does not find,
 * for example because only the broker knows it, stays as it was found.
 */
function Followed({ purchase, found }: { readonly purchase: Trace; readonly found: Resource<FoundPurchases> }) {
  const { saleId, userId, requestId } = purchase;
  const [isFollowed, setFollowed] = useState(true);
  const [everyMs, setEveryMs] = useState(UNDECIDED_EVERY_MS);
  const read = useResource<FoundPurchases>(isFollowed ? pathOfRequest(requestId) : null, {
    query: { saleId, userId },
    everyMs,
  });
  useEffect(() => {
    if (read.error?.status === 404) setFollowed(false);
  }, [read.error]);
  const now = read.data?.purchases.find((one) => keyOf(one) === keyOf(purchase)) ?? purchase;
  const hasOrder = namedIn(now).orderId !== null;
  useEffect(() => setEveryMs(hasOrder ? ORDERED_EVERY_MS : UNDECIDED_EVERY_MS), [hasOrder]);
  const state = isFollowed ? { ...read, readAtMs: Math.max(read.readAtMs, found.readAtMs) } : found;
  return <Life purchase={now} read={state} />;
}

function Life({ purchase, read }: { readonly purchase: Trace; readonly read: Parameters<typeof Freshness>[0] }) {
  const { t, f } = useWords();
  const { saleId, userId, requestId, state, sentence, timeline } = purchase;
  const { orderId, batchId, deadLetterIds } = namedIn(purchase);
  const whole = tookMs(timeline);
  return (
    <>
      <Panel
        title={
          <span class="inline">
            <PurchaseState state={state} /> <span class="breaks">{userId}</span>
          </span>
        }
        actions={<Freshness {...read} />}
      >
        <Next sentence={sentence} nextAt={purchase.nextAt} state={state} deadLetterIds={deadLetterIds} />
        <Facts
          facts={[
            [t.common.request, <Id text={requestId} />],
            [
              t.common.user,
              <Id text={userId} to={pathOf({ screen: 'purchases', id: null }) + queryOf({ user: userId })} />,
            ],
            [t.common.sale, <Id text={saleId} to={pathOf({ screen: 'sale', saleId })} />],
            [t.common.order, <Id text={orderId} />],
            [t.common.batch, <Id text={batchId} />],
            ...(batchId === null
              ? []
              : [
                  [
                    t.messages.title,
                    <Link to={pathOf({ screen: 'messages', tab: 'browse' }) + queryOf({ way: 'key', key: batchId })}>
                      {t.purchases.messagesOfBatch}
                    </Link>,
                  ] as const,
                ]),
            ...deadLetterIds.map(
              (one) =>
                [
                  t.deadLetters.title,
                  <Link to={pathOf({ screen: 'dead-letters', deadLetterId: one })}>{t.purchases.deadLetter(one)}</Link>,
                ] as const,
            ),
          ]}
        />
      </Panel>
      {orderId !== null && <OrderPanel key={orderId} orderId={orderId} onDone={read.reload} />}
      <Panel
        title={t.purchases.timeline}
        actions={whole !== null && <span class="hint number">{t.purchases.took(f.duration(whole))}</span>}
      >
        <TimeLine stages={stageLines(timeline)} />
      </Panel>
      <Panel title={t.purchases.evidence} hint={t.purchases.evidenceHint} flush>
        <Evidence steps={purchase.steps} />
      </Panel>
    </>
  );
}

function Next({
  sentence,
  nextAt,
  state,
  deadLetterIds,
}: {
  readonly sentence: string;
  readonly nextAt: string | null;
  readonly state: string;
  readonly deadLetterIds: readonly string[];
}) {
  const { t, f } = useWords();
  const now = useNow();
  const leftMs = nextAt === null ? null : Date.parse(nextAt) - now;
  const tone = ['parked', 'stray', 'unrecorded', 'failed'].includes(state) ? 'warn' : 'info';
  return (
    <Note tone={tone}>
      <b>{t.purchases.next}</b>
      {leftMs !== null && (
        <span class="next-at number">
          {leftMs > 0
            ? t.purchases.nextIn(f.duration(Math.ceil(leftMs / 1000) * 1000))
            : t.purchases.due(f.duration(Math.floor(-leftMs / 1000) * 1000))}
        </span>
      )}
      <p lang="en" class="sentence">
        {f.withTimes(sentence)}
      </p>
      {state === 'parked' &&
        deadLetterIds.map((id) => (
          <Link key={id} to={pathOf({ screen: 'dead-letters', deadLetterId: id })} class="button plain">
            {t.purchases.openDeadLetter(id)}
          </Link>
        ))}
    </Note>
  );
}

const STAGE_ICONS: Readonly<Record<StageLine['state'], IconName>> = {
  done: 'check',
  waiting: 'clock',
  failed: 'close',
  not_reached: 'dot',
  unknown: 'dot',
};

function TimeLine({ stages }: { readonly stages: readonly StageLine[] }) {
  const { t, f } = useWords();
  return (
    <ol class="timeline">
      {stages.map(({ stage, state, atMs, dueMs, afterMs, text, isNext }) => (
        <li key={stage} class={`${state} ${isNext ? 'next' : ''}`} aria-current={isNext ? 'step' : undefined}>
          <span class="stage-sign">
            <Icon name={STAGE_ICONS[state]} />
          </span>
          <div class="stage-name">
            <b>{t.purchases.stages[stage]}</b>
            <small>{t.purchases.stageStates[state]}</small>
          </div>
          <div class="stage-time">
            {atMs !== null ? (
              <Time at={atMs} ms />
            ) : dueMs !== null ? (
              <small>{t.purchases.dueAt(f.time(dueMs))}</small>
            ) : (
              <span class="faint">–</span>
            )}
            {afterMs !== null && <small class="number">{t.purchases.after(f.duration(Math.max(0, afterMs)))}</small>}
          </div>
          <p lang="en">{f.withTimes(text)}</p>
        </li>
      ))}
    </ol>
  );
}

function Evidence({ steps }: { readonly steps: readonly TraceStep[] }) {
  const { t } = useWords();
  const rows = steps.map((step, index) => ({ ...step, index }));
  const columns: readonly Column<(typeof rows)[number]>[] = [
    {
      name: t.common.at,
      width: '130px',
      cell: ({ at }) => (at === null ? <span class="faint">{t.purchases.present}</span> : <Time at={at} ms />),
    },
    {
      name: t.purchases.sourceTitle,
      width: '100px',
      hides: 'phone',
      cell: ({ source }) => wordIn(t.purchases.source, source),
    },
    { name: t.common.action, width: '150px', phoneWidth: '110px', cell: ({ what }) => <code>{what}</code> },
    {
      name: t.common.details,
      cell: ({ detail }) => <Cut text={detail} lang="en" />,
    },
  ];
  return <Table label={t.purchases.evidence} columns={columns} rows={rows} keyOf={({ index }) => String(index)} />;
}

/** Shows the orders of a buyer, with a link from each to its life. */
function OrdersOf({ user }: { readonly user: string }) {
  const { t, f } = useWords();
  const [{ saleId }] = useFilter(['saleId'] as const);
  const orders = usePages<FoundOrder>('/admin/v1/orders', { user, sale: saleId }, { rows: 'orders', place: 'after' });
  // A page of a search may be short or empty while more pages follow.
  useEffect(() => {
    if (!orders.isLoading && orders.rows.length === 0 && orders.hasMore) orders.more();
  }, [orders.isLoading, orders.rows.length, orders.hasMore]);
  const columns: readonly Column<FoundOrder>[] = [
    {
      name: t.common.order,
      cell: ({ orderId }) => <Id text={orderId} to={pathOf({ screen: 'purchases', id: orderId })} />,
    },
    {
      name: t.common.state,
      width: '150px',
      phoneWidth: '124px',
      cell: ({ state, reason }) => (
        <span title={reason ?? undefined}>
          <PurchaseState state={state} />
        </span>
      ),
      sort: ({ state }) => state,
    },
    {
      name: t.common.sale,
      hides: 'phone',
      width: '90px',
      cell: ({ saleId: sale }) => <SaleLink saleId={sale} />,
      sort: ({ saleId: sale }) => Number(sale),
    },
    { name: t.common.request, hides: 'phone', cell: ({ requestId }) => <Id text={requestId} /> },
    {
      name: t.purchases.quantity,
      isNumber: true,
      hides: 'phone',
      width: '80px',
      cell: ({ quantity }) => f.number(quantity),
    },
    {
      name: t.purchases.amount,
      isNumber: true,
      width: '110px',
      phoneWidth: '84px',
      cell: (order) => <OrderAmount order={order} />,
      sort: ({ amountCents }) => amountCents,
    },
    {
      name: t.purchases.created,
      hides: 'narrow',
      width: '150px',
      cell: ({ createdAt }) => <Time at={createdAt} />,
      sort: ({ createdAt }) => createdAt,
    },
  ];
  return (
    <Panel title={t.purchases.ordersOf(user)} flush actions={<Freshness {...orders} />}>
      <Table
        label={t.purchases.ordersOf(user)}
        columns={columns}
        {...orders.list}
        keyOf={({ orderId }) => orderId}
        onOpen={({ orderId }) => navigate(pathOf({ screen: 'purchases', id: orderId }))}
        empty={
          <Empty title={t.purchases.noOrders(user)} icon="search">
            {/^[\w-]{1,64}$/.test(user) && (
              <Button onClick={() => navigate(pathOf({ screen: 'purchases', id: user }))}>
                {t.shell.searchKinds.purchase}
              </Button>
            )}
          </Empty>
        }
      />
    </Panel>
  );
}
