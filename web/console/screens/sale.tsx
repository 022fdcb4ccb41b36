import { useEffect, useMemo, useState } from 'preact/hooks';
import type {
  AuditEntry,
  Breakers,
  Bucket,
  LiveSale,
  FoundOrder,
  RefundCounts,
  Sale,
  SaleSecond,
  SaleSeconds,
} from '../api/types.js';
import { actionsOn, type SaleAction } from '../logic/permissions.js';
import { queryOf, timeOf } from '../logic/query.js';
import { pathOf } from '../logic/routes.js';
import {
  chartData,
  RANGES,
  readableStretch,
  refusals,
  secondOf,
  stretchOf,
  totalsOf,
  withHeard,
  withRead,
  type KnownSeconds,
  type Range,
} from '../logic/sale-seconds.js';
import { Ago, Badge, Button, Cut, Facts, Figure, Id, Link, Panel, ScreenHead, Time } from '../parts/basics.js';
import { RushChart } from '../parts/chart.js';
import { Dialog } from '../parts/dialog.js';
import { Segments, TextField } from '../parts/fields.js';
import { Icon } from '../parts/icons.js';
import { SaveButton } from '../parts/save.js';
import { StockBar } from '../parts/small-charts.js';
import { Empty, Failure, Freshness, Loading, Note, ProblemText, Shown } from '../parts/states.js';
import { Table, type Column } from '../parts/table.js';
import { PurchaseState, Refusals, SaleState } from '../parts/words.js';
import { useStaleText } from '../shell/frame.js';
import { navigate, serverNowMs, useApp, useFilter, useNow, useResource, useStore, useWords } from '../shell/hooks.js';
import { BreakerTable } from './health.js';
import { WindowLeft } from './live.js';
import { OrderAmount } from './order-panel.js';
import { SaleActionDialog } from './sale-actions.js';
import { SaleRefunds, VOID_CHOICES, VoidDialog } from './void-sale.js';
import { WaitingRoomPanel } from './waiting-room.js';

/** Shows a sale: its rush second by second, where its units are, and its actions. */
export function SaleScreen({ saleId }: { readonly saleId: string }) {
  const { live, me } = useApp();
  const { t } = useWords();
  const sale = useResource<Sale>(`/admin/v1/sales/${saleId}`, { everyMs: 15_000 });
  const { snapshot } = useStore(live.state);
  const [action, setAction] = useState<Exclude<SaleAction, 'void'> | null>(null);
  const refunds = useResource<RefundCounts>(`/admin/v1/sales/${saleId}/refunds`, { everyMs: 15_000 });
  const [{ void: voiding }, setFilter] = useFilter(['void'] as const); // a reload then opens the dialog again
  const voidChoice = VOID_CHOICES.find((one) => one === voiding);
  const stale = useStaleText();
  const now = snapshot?.sales.find((one) => one.saleId === saleId) ?? null;

  if (sale.data === null) {
    return (
      <>
        <ScreenHead title={t.sale.title(saleId)} />
        <Panel>
          {sale.error === null ? (
            <Loading />
          ) : sale.error.code === 'not_found' ? (
            <Empty title={t.sale.notFound(saleId)} icon="sales" />
          ) : (
            <Failure error={sale.error} onRetry={sale.reload} />
          )}
        </Panel>
      </>
    );
  }
  const { data } = sale;
  const state = now?.state === 'repair' ? 'repair' : data.state;
  const actions = actionsOn(data, me.role);
  return (
    <>
      <ScreenHead
        title={data.title}
        badge={<SaleState state={state} retired={data.retiredAt !== null} />}
        under={
          <>
            <Id text={saleId} /> <code>{data.sku}</code>{' '}
            {data.state !== 'closed' && (
              <WindowLeft opensAtMs={Date.parse(data.opensAt)} closesAtMs={Date.parse(data.closesAt)} />
            )}
            {stale !== null && <span class="stale">{stale}</span>}
          </>
        }
        actions={actions.map((one) => (
          <Button
            key={one}
            kind={
              one === 'close' || one === 'cancel' || one === 'void' || one === 'delete'
                ? 'danger'
                : one === 'open' || one === 'resume'
                  ? 'main'
                  : 'plain'
            }
            onClick={() => (one === 'void' ? setFilter({ void: 'unpaid' }) : setAction(one))}
          >
            {t.sale.actions[one]}
          </Button>
        ))}
      />
      <div class={stale === null ? undefined : 'is-stale'}>
        <Overview sale={data} now={now} />
      </div>
      <Rush sale={data} now={now} />
      <div class="halves">
        <Buckets sale={data} />
        <div class="stack">
          <Panel title={t.sale.facts} actions={<Freshness {...sale} />}>
            <SaleFacts sale={data} />
          </Panel>
          <SaleRefunds sale={data} counts={refunds} />
          <WaitingRoomPanel sale={data} />
          <SaleBreakers />
        </div>
      </div>
      <Orders sale={data} />
      <History saleId={saleId} />
      {action !== null && (
        <SaleActionDialog action={action} sale={data} now={now} onClose={() => setAction(null)} onDone={sale.reload} />
      )}
      {voidChoice !== undefined && actions.includes('void') && (
        <VoidDialog
          sale={data}
          choice={voidChoice}
          pending={now?.pending ?? 0}
          onChoose={(choice) => setFilter({ void: choice })}
          onClose={() => setFilter({ void: '' })}
          onDone={refunds.reload}
        />
      )}
    </>
  );
}

function Overview({ sale, now }: { readonly sale: Sale; readonly now: LiveSale | null }) {
  const { t, f } = useWords();
  const shown = (value: number | null | undefined): string =>
    value === null || value === undefined ? '–' : f.number(value);
  return (
    <div class="figures">
      <div class="figure wide">
        <div class="figure-label">{t.live.stock}</div>
        <div class="figure-value">
          <span class="number">{f.number(sale.stock)}</span>
        </div>
        <StockBar stock={sale.stock} sold={now?.sold ?? sale.sold} held={now?.held ?? null} left={now?.left ?? null} />
      </div>
      <Figure
        label={t.live.accepted}
        value={shown(now?.acceptedPerSecond)}
        unit={t.live.perSecond}
        hint={t.live.acceptedHint}
      />
      <Figure
        label={t.live.landed}
        value={shown(now?.landedPerSecond)}
        unit={t.live.perSecond}
        hint={t.live.landedHint}
      />
      <Figure
        label={t.live.pending}
        value={shown(now?.pending)}
        hint={t.live.pendingHint}
        under={
          now?.pendingOldestMs === null || now === null ? undefined : t.live.oldest(f.duration(now.pendingOldestMs))
        }
      />
    </div>
  );
}

/** Interval between two reads of missing seconds. */
const READ_EVERY_MS = 3_000;

/**
 * Collects the seconds of a range: those that the API remembers, and each new second as it arrives. It also reads
 * missing seconds: those of a lost stream, and the rest of a range that the API did not return at once.
 */
function useSeconds(sale: Sale, now: LiveSale | null, range: Range) {
  const { live } = useApp();
  const window = { opensAtMs: Date.parse(sale.opensAt), closesAtMs: Date.parse(sale.closesAt) };
  useNow();
  const nowMs = serverNowMs(live);
  const { fromMs, toMs } = stretchOf(range, window, nowMs);
  const [asked, setAsked] = useState({ fromMs, toMs: readableStretch(range, window, nowMs).toMs, atMs: nowMs });
  const query = { from: new Date(asked.fromMs).toISOString(), to: new Date(asked.toMs).toISOString() };
  const read = useResource<SaleSeconds>(`/admin/v1/sales/${sale.saleId}/seconds`, { query });
  const [known, setKnown] = useState<KnownSeconds>({ seconds: [], wholeToMs: fromMs });
  const [isRead, setRead] = useState(false);
  const { data } = read;
  useEffect(() => {
    if (data === null) return;
    setKnown((before) => withRead(before, data));
    setRead(true);
  }, [data]);
  useEffect(() => {
    const second = now === null ? null : secondOf(now);
    if (second !== null) setKnown((before) => withHeard(before, second));
  }, [now]);
  const { wholeToMs } = known;
  const isDue = wholeToMs < toMs && nowMs - asked.atMs >= READ_EVERY_MS && !read.isLoading && !document.hidden;
  useEffect(() => {
    if (!isDue) return;
    if (read.error === null) {
      setAsked({ fromMs: wholeToMs, toMs: readableStretch(range, window, nowMs).toMs, atMs: nowMs });
    } else {
      setAsked({ ...asked, atMs: nowMs });
      read.reload();
    }
  }, [isDue]);
  const chart = useMemo(() => chartData(known, fromMs, toMs), [known, fromMs, toMs]);
  const seconds = known.seconds.filter(({ atMs }) => atMs >= fromMs && atMs < toMs);
  return { read, isRead, seconds, chart };
}

function Rush({ sale, now }: { readonly sale: Sale; readonly now: LiveSale | null }) {
  const { t } = useWords();
  const [range, setRange] = useState<Range>(sale.state === 'open' || sale.state === 'paused' ? 'm5' : 'opening');
  const [isTable, setTable] = useState(false);
  return (
    <Panel
      title={t.sale.rush}
      hint={t.sale.rushHint}
      actions={
        <>
          <Segments
            label={t.sale.range}
            value={range}
            options={RANGES.map((one) => [one, t.sale.ranges[one]] as const)}
            onPick={setRange}
          />
          <Button kind="quiet" pressed={isTable} onClick={() => setTable(!isTable)}>
            {isTable ? t.sale.asChart : t.sale.asTable}
          </Button>
        </>
      }
    >
      <Stretch
        key={`${range} ${sale.opensAt} ${sale.closesAt}`}
        sale={sale}
        now={now}
        range={range}
        isTable={isTable}
      />
    </Panel>
  );
}

function Stretch({
  sale,
  now,
  range,
  isTable,
}: {
  readonly sale: Sale;
  readonly now: LiveSale | null;
  readonly range: Range;
  readonly isTable: boolean;
}) {
  const { t, f } = useWords();
  const { read, isRead, seconds, chart } = useSeconds(sale, now, range);
  const totals = totalsOf(seconds);
  const columns: readonly Column<SaleSecond>[] = [
    { name: t.common.at, cell: ({ atMs }) => <Time at={atMs} exact />, sort: ({ atMs }) => atMs },
    {
      name: t.live.accepted,
      isNumber: true,
      cell: ({ won }) => (won === null ? '–' : f.number(won)),
      sort: ({ won }) => won,
    },
    { name: t.live.landed, isNumber: true, cell: ({ landed }) => f.number(landed), sort: ({ landed }) => landed },
    {
      name: t.live.refused,
      isNumber: true,
      cell: (second) => (refusals(second) === null ? '–' : f.number(refusals(second) ?? 0)),
      sort: refusals,
    },
    {
      name: t.sale.words,
      hides: 'narrow',
      width: '40%',
      cell: ({ refused }) => (refused === null ? '–' : <Refusals counts={refused} />),
    },
  ];
  if (!isRead) return read.error === null ? <Loading /> : <Failure error={read.error} onRetry={read.reload} />;
  return (
    <>
      {read.error !== null && (
        <Note tone="warn">
          <ProblemText error={read.error} />
        </Note>
      )}
      {seconds.length === 0 ? (
        <Empty title={t.sale.noSeconds} text={t.sale.noSecondsText} icon="live" />
      ) : isTable ? (
        <Table label={t.sale.rush} columns={columns} rows={seconds} keyOf={({ atMs }) => String(atMs)} />
      ) : (
        <RushChart data={chart} label={t.sale.rushHint} />
      )}
      {seconds.length > 0 && (
        <div class="totals">
          <span class="faint">{t.sale.total}</span>
          <span>
            {t.live.accepted} <b class="number">{f.number(totals.won)}</b>
          </span>
          <span>
            {t.live.landed} <b class="number">{f.number(totals.landed)}</b>
          </span>
          <span>
            {t.live.refused} <b class="number">{f.number(totals.refused)}</b>
          </span>
          <span>
            {t.sale.peak} <b class="number">{f.number(totals.peak)}</b>
            {t.live.perSecond}
          </span>
          <Refusals counts={totals.words} most={6} />
        </div>
      )}
      {seconds.some(({ won }) => won === null) && <p class="hint">{t.sale.forgotten}</p>}
    </>
  );
}

function Buckets({ sale }: { readonly sale: Sale }) {
  const { t, f } = useWords();
  const isLoaded = sale.state !== 'draft' && sale.retiredAt === null;
  const read = useResource<{ buckets: readonly Bucket[] }>(isLoaded ? `/admin/v1/sales/${sale.saleId}/buckets` : null, {
    everyMs: 10_000,
  });
  const columns: readonly Column<Bucket>[] = [
    {
      name: t.sale.bucket,
      isNumber: true,
      width: '70px',
      cell: ({ bucket, sameServer }) => (
        <>
          {sameServer === false && (
            <span class="stale" title={t.sale.otherServer}>
              <Icon name="warn" />
              <span class="hidden">{t.sale.otherServer}</span>
            </span>
          )}{' '}
          {f.number(bucket)}
        </>
      ),
      sort: ({ bucket }) => bucket,
    },
    {
      name: t.common.state,
      width: '116px',
      cell: ({ state, error }) =>
        error !== null ? (
          <Badge tone="bad" title={error}>
            {error}
          </Badge>
        ) : state === null ? (
          <Badge tone="warn">{t.sale.states.not_loaded}</Badge>
        ) : (
          <SaleState state={state as LiveSale['state']} />
        ),
    },
    {
      name: t.sale.unitsLeft,
      isNumber: true,
      cell: ({ unitsLeft }) => (unitsLeft === null ? '–' : f.number(unitsLeft)),
      sort: ({ unitsLeft }) => unitsLeft,
    },
    {
      name: t.sale.pending,
      isNumber: true,
      cell: ({ pending }) => (pending === null ? '–' : f.number(pending)),
      sort: ({ pending }) => pending,
    },
    {
      name: t.sale.oldest,
      isNumber: true,
      hides: 'phone',
      cell: ({ pendingOldestMs }) => (pendingOldestMs === null ? '–' : f.duration(pendingOldestMs)),
      sort: ({ pendingOldestMs }) => pendingOldestMs,
    },
    {
      name: t.sale.epoch,
      isNumber: true,
      hides: 'narrow',
      cell: ({ epoch }) => (epoch === null ? '–' : f.number(epoch)),
    },
  ];
  return (
    <Panel title={t.sale.buckets} flush actions={isLoaded && <Freshness {...read} />}>
      {isLoaded ? (
        <Shown of={read}>
          {({ buckets }) => (
            <Table label={t.sale.buckets} columns={columns} rows={buckets} keyOf={({ bucket }) => String(bucket)} />
          )}
        </Shown>
      ) : (
        <Empty title={t.sale.states.not_loaded} icon="info" />
      )}
    </Panel>
  );
}

function SaleFacts({ sale }: { readonly sale: Sale }) {
  const { t, f } = useWords();
  return (
    <Facts
      facts={[
        [t.sales.opens, <Time at={sale.opensAt} />],
        [t.sales.closes, <Time at={sale.closesAt} />],
        [t.sale.price, f.money(sale.priceCents, sale.currency)],
        [t.sale.limit, f.number(sale.limitPerBuyer)],
        [t.sales.fields.paymentWindow, sale.paymentWindow ?? t.sale.defaultWindow],
        [t.sales.fields.stock, f.number(sale.stock)],
        [t.sales.sold, f.number(sale.sold)],
        [t.sale.buckets, f.number(sale.buckets)],
        [t.sale.epoch, f.number(sale.epoch)],
        [t.sale.runBy, sale.warmBefore === null ? t.sale.byHand : t.sale.byKeeper(sale.warmBefore)],
        [
          t.reconcile.title,
          <Link to={pathOf({ screen: 'reconcile', tab: 'runs', runId: null }) + queryOf({ saleId: sale.saleId })}>
            {t.reconcile.runs}
          </Link>,
        ],
        [
          t.deadLetters.title,
          <Link to={pathOf({ screen: 'dead-letters', deadLetterId: null }) + queryOf({ saleId: sale.saleId })}>
            {t.deadLetters.states.parked}
          </Link>,
        ],
      ]}
    />
  );
}

function SaleBreakers() {
  const { t } = useWords();
  const breakers = useResource<Breakers>('/admin/v1/breakers', { everyMs: 15_000 });
  return (
    <Panel title={t.sale.breakers} flush actions={<Freshness {...breakers} />}>
      <Shown of={breakers} rows={3}>
        {(data) => <BreakerTable {...data} />}
      </Shown>
    </Panel>
  );
}

function Orders({ sale }: { readonly sale: Sale }) {
  const { saleId } = sale;
  const { t, f } = useWords();
  const [isExporting, setExporting] = useState(false);
  const orders = useResource<{ orders: readonly FoundOrder[] }>('/admin/v1/orders', {
    query: { sale: saleId, limit: 20 },
    everyMs: 15_000,
  });
  const columns: readonly Column<FoundOrder>[] = [
    {
      name: t.common.order,
      cell: ({ orderId }) => <Id text={orderId} to={pathOf({ screen: 'purchases', id: orderId })} />,
    },
    { name: t.common.user, cell: ({ userId }) => <Id text={userId} /> },
    {
      name: t.common.state,
      cell: ({ state, reason }) => (
        <span title={reason ?? undefined}>
          <PurchaseState state={state} />
        </span>
      ),
    },
    { name: t.purchases.quantity, isNumber: true, hides: 'phone', cell: ({ quantity }) => f.number(quantity) },
    { name: t.purchases.amount, isNumber: true, hides: 'phone', cell: (order) => <OrderAmount order={order} /> },
    { name: t.purchases.created, hides: 'narrow', cell: ({ createdAt }) => <Time at={createdAt} /> },
  ];
  return (
    <Panel
      title={t.sale.orders}
      hint={t.sale.ordersHint}
      flush
      actions={
        <>
          <Button icon="download" onClick={() => setExporting(true)}>
            {t.sale.exportOrders}
          </Button>
          <Freshness {...orders} />
        </>
      }
    >
      <Shown of={orders}>
        {(page) => (
          <Table
            label={t.sale.orders}
            columns={columns}
            rows={page.orders}
            keyOf={({ orderId }) => orderId}
            onOpen={({ orderId }) => navigate(pathOf({ screen: 'purchases', id: orderId }))}
            empty={<Empty title={t.states.emptyTitle} icon="purchases" />}
          />
        )}
      </Shown>
      {isExporting && <ExportDialog sale={sale} onClose={() => setExporting(false)} />}
    </Panel>
  );
}

/** Exports the orders of a sale: all of them, or the orders paid within a time span. */
function ExportDialog({ sale: { saleId, opensAt }, onClose }: { readonly sale: Sale; readonly onClose: () => void }) {
  const { t } = useWords();
  const [typed, setTyped] = useState({ paidFrom: '', paidTo: '' });
  const [openedMs] = useState(Date.now); // `2h` is two hours before this time
  const [paidFrom, paidTo] = [timeOf(typed.paidFrom, openedMs), timeOf(typed.paidTo, openedMs)];
  const field = (name: keyof typeof typed) => (
    <TextField
      label={t.sale[name]}
      value={typed[name]}
      onInput={(text) => setTyped({ ...typed, [name]: text })}
      placeholder="2h"
      error={timeOf(typed[name], openedMs) === null ? t.common.badTime : undefined}
    />
  );
  const query = { sale: saleId, format: 'csv', paidFrom: paidFrom || (paidTo && opensAt), paidTo };
  return (
    <Dialog
      title={t.sale.exportOrders}
      onClose={onClose}
      foot={
        paidFrom !== null &&
        paidTo !== null && (
          <SaveButton
            path="/admin/v1/orders/export"
            query={query}
            name={`orders-${saleId}.csv`}
            text={t.sale.exportOrders}
          />
        )
      }
    >
      <p>{t.sale.exportText}</p>
      <div class="form-grid">
        {field('paidFrom')}
        {field('paidTo')}
      </div>
    </Dialog>
  );
}

function History({ saleId }: { readonly saleId: string }) {
  const { t } = useWords();
  const subject = `sale:${saleId}`;
  const read = useResource<{ entries: readonly AuditEntry[] }>('/admin/v1/audit', {
    query: { subject, limit: 10 },
    everyMs: 30_000,
  });
  return (
    <Panel
      title={t.sale.history}
      actions={<Link to={pathOf({ screen: 'audit' }) + queryOf({ subject })}>{t.sale.wholeHistory}</Link>}
    >
      <Shown of={read} rows={3}>
        {({ entries }) =>
          entries.length === 0 ? (
            <Empty title={t.audit.empty} icon="audit" />
          ) : (
            <ul class="history">
              {entries.map(({ auditId, at, actor, action }) => (
                <li key={auditId}>
                  <Time at={at} />
                  <code>{action}</code>
                  <Cut text={actor} />
                  <Ago at={at} />
                </li>
              ))}
            </ul>
          )
        }
      </Shown>
    </Panel>
  );
}
