import { useMemo, useState } from 'preact/hooks';
import {
  DEAD_LETTER_REASONS,
  DEAD_LETTER_STATES,
  type DeadLetter,
  type DeadLetterWithOrders,
  type PurchaseOfBatch,
} from '../api/types.js';
import { may } from '../logic/permissions.js';
import { pathOf } from '../logic/routes.js';
import { queryOf } from '../logic/query.js';
import type { Tone } from '../logic/time-line.js';
import { Ago, Badge, Button, Cut, Facts, Id, Panel, SaleLink, ScreenHead, Time } from '../parts/basics.js';
import { Confirm } from '../parts/confirm.js';
import { Dialog } from '../parts/dialog.js';
import { choice, FilterBar } from '../parts/fields.js';
import { SaveButton } from '../parts/save.js';
import { Empty, Failure, Freshness, Loading, Note } from '../parts/states.js';
import { Table, type Column } from '../parts/table.js';
import { Code, readable } from '../parts/values.js';
import { navigate, useAddress, useApp, useFilter, usePages, useResource, useWords } from '../shell/hooks.js';
import { BulkDialog, type BulkAction, type BulkOn } from './dead-letter-bulk.js';

const FILTERS = ['state', 'saleId', 'key', 'reason', 'group', 'topic', 'text', 'since', 'until'] as const;
const STATE_TONES: Readonly<Record<DeadLetter['state'], Tone>> = { parked: 'bad', replayed: 'ok', discarded: 'idle' };

/** Shows messages that no attempt could turn into orders, and the decisions that a person can make about them. */
export function DeadLettersScreen({ openId }: { readonly openId: string | null }) {
  const { me } = useApp();
  const { t, f } = useWords();
  const { search } = useAddress();
  const [filter, setFilter] = useFilter(FILTERS);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const letters = usePages<DeadLetter>('/admin/v1/dead-letters', filter, {
    rows: 'deadLetters',
    place: 'after',
    isHeld: selected.size > 0,
  });
  const [bulk, setBulk] = useState<{ action: BulkAction; on: BulkOn } | null>(null);
  const [mayReplay, mayDiscard] = [may(me.role, 'operator'), may(me.role, 'admin')];
  const parked = letters.rows
    .filter(({ deadLetterId, state }) => selected.has(deadLetterId) && state === 'parked')
    .map(({ deadLetterId }) => deadLetterId);
  const open = (deadLetterId: string | null): void => {
    const query = search === '' ? '' : `?${search}`;
    navigate(pathOf({ screen: 'dead-letters', deadLetterId }) + query);
  };
  const { state: _state, ...bulkFilter } = filter;
  const start = (action: BulkAction, on: BulkOn) => () => setBulk({ action, on });
  const columns: readonly Column<DeadLetter>[] = [
    {
      name: '#',
      isNumber: true,
      width: '76px',
      phoneWidth: '48px',
      sort: ({ deadLetterId }) => Number(deadLetterId),
      cell: ({ deadLetterId }) => <code>{deadLetterId}</code>,
    },
    {
      name: t.common.state,
      width: '110px',
      phoneWidth: '92px',
      sort: ({ state }) => state,
      cell: ({ state }) => <Badge tone={STATE_TONES[state]}>{t.deadLetters.states[state]}</Badge>,
    },
    {
      name: t.common.reason,
      width: '160px',
      phoneWidth: 'auto',
      sort: ({ reason }) => reason,
      cell: ({ reason }) => <span title={reason}>{t.deadLetters.reasons[reason]}</span>,
    },
    {
      name: t.deadLetters.error,
      hides: 'phone',
      cell: ({ detail }) => <Cut text={detail} lang="en" />,
    },
    {
      name: t.common.sale,
      width: '80px',
      hides: 'phone',
      sort: ({ saleId }) => (saleId === null ? null : Number(saleId)),
      cell: ({ saleId }) => <SaleLink saleId={saleId} />,
    },
    {
      name: t.common.batch,
      hides: 'narrow',
      width: '190px',
      cell: ({ batchId }) => <Id text={batchId} />,
    },
    {
      name: t.common.attempts,
      isNumber: true,
      hides: 'narrow',
      width: '90px',
      sort: ({ attempts }) => attempts,
      cell: ({ attempts }) => f.number(attempts),
    },
    {
      name: t.deadLetters.parkedAt,
      width: '110px',
      phoneWidth: '84px',
      sort: ({ parkedAt }) => parkedAt,
      cell: ({ parkedAt }) => <Ago at={parkedAt} />,
    },
  ];
  return (
    <>
      <ScreenHead
        title={t.deadLetters.title}
        actions={
          <SaveButton
            path="/admin/v1/dead-letters/export"
            query={{ ...filter, format: 'csv' }}
            name="dead-letters.csv"
            text={t.deadLetters.csv}
            hint={t.deadLetters.csvHint}
          />
        }
      />
      <Panel flush>
        <FilterBar
          fields={[
            choice('state', t.common.state, DEAD_LETTER_STATES, t.deadLetters.states),
            choice('reason', t.common.reason, DEAD_LETTER_REASONS, t.deadLetters.reasons),
            { name: 'saleId', label: t.common.sale, kind: 'text' },
            { name: 'key', label: t.common.key, kind: 'text', hint: t.deadLetters.keyHint },
            { name: 'text', label: t.deadLetters.errorText, kind: 'text' },
            { name: 'topic', label: t.common.topic, kind: 'text' },
            { name: 'group', label: t.common.group, kind: 'text' },
            { name: 'since', label: t.common.since, kind: 'time' },
            { name: 'until', label: t.deadLetters.until, kind: 'time' },
          ]}
          values={filter}
          onChange={(values) => {
            setSelected(new Set());
            setFilter(values);
          }}
        >
          <Freshness {...letters} />
        </FilterBar>
        {mayReplay && (
          <div class="bulk">
            <span class="faint number">{t.deadLetters.selected(f.number(parked.length))}</span>
            <Button onClick={start('replay', { ids: parked })} disabled={parked.length === 0}>
              {t.deadLetters.replaySelected}
            </Button>
            {mayDiscard && (
              <Button onClick={start('discard', { ids: parked })} disabled={parked.length === 0}>
                {t.deadLetters.discardSelected}
              </Button>
            )}
            <span class="gap" />
            <Button onClick={start('replay', { filter: bulkFilter })} disabled={letters.rows.length === 0}>
              {t.deadLetters.replayMatching}
            </Button>
            {mayDiscard && (
              <Button onClick={start('discard', { filter: bulkFilter })} disabled={letters.rows.length === 0}>
                {t.deadLetters.discardMatching}
              </Button>
            )}
          </div>
        )}
        <Table
          label={t.deadLetters.title}
          columns={columns}
          {...letters.list}
          keyOf={({ deadLetterId }) => deadLetterId}
          nameOf={({ deadLetterId }) => t.deadLetters.one(deadLetterId)}
          onOpen={({ deadLetterId }) => open(deadLetterId)}
          isOpen={({ deadLetterId }) => deadLetterId === openId}
          {...(mayReplay && { selected, onSelect: setSelected })}
          empty={
            <Empty
              title={filter.state === 'parked' ? t.deadLetters.emptyParked : t.deadLetters.empty}
              text={t.deadLetters.emptyText}
            />
          }
        />
      </Panel>
      {openId !== null && (
        <DeadLetterDialog key={openId} deadLetterId={openId} onClose={() => open(null)} onChanged={letters.reload} />
      )}
      {bulk && (
        <BulkDialog
          action={bulk.action}
          on={bulk.on}
          onClose={() => setBulk(null)}
          onDone={() => {
            setSelected(new Set());
            letters.reload();
          }}
        />
      )}
    </>
  );
}

function DeadLetterDialog({
  deadLetterId,
  onClose,
  onChanged,
}: {
  readonly deadLetterId: string;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}) {
  const { t } = useWords();
  const read = useResource<DeadLetterWithOrders>(`/admin/v1/dead-letters/${deadLetterId}`);
  const changed = (): void => {
    read.reload();
    onChanged();
  };
  return (
    <Dialog title={t.deadLetters.one(deadLetterId)} onClose={onClose} shape="side">
      {read.data !== null ? (
        <Letter letter={read.data} onChanged={changed} />
      ) : read.error === null ? (
        <Loading rows={10} />
      ) : read.error.status === 404 ? (
        <Empty title={t.deadLetters.notFound(deadLetterId)} icon="deadLetters" />
      ) : (
        <Failure error={read.error} onRetry={read.reload} />
      )}
    </Dialog>
  );
}

function Letter({ letter, onChanged }: { readonly letter: DeadLetterWithOrders; readonly onChanged: () => void }) {
  const { me } = useApp();
  const { t, f } = useWords();
  const [action, setAction] = useState<BulkAction | null>(null);
  const isParked = letter.state === 'parked';
  const isForged = letter.reason === 'forged';
  const decoded = useMemo(
    () => (letter.batch === null ? readable(letter.body) : JSON.stringify(letter.batch, null, 2)),
    [letter],
  );
  return (
    <>
      <div class="inline letter-head">
        <Badge tone={STATE_TONES[letter.state]}>{t.deadLetters.states[letter.state]}</Badge>
        <span>{t.deadLetters.reasons[letter.reason]}</span>
        <span class="gap" />
        {isParked && !isForged && may(me.role, 'operator') && (
          <Button kind="main" onClick={() => setAction('replay')}>
            {t.deadLetters.replay}
          </Button>
        )}
        {isParked && may(me.role, 'admin') && (
          <Button kind="danger" onClick={() => setAction('discard')}>
            {t.deadLetters.discard}
          </Button>
        )}
      </div>
      <Note tone={isParked ? 'bad' : 'info'}>
        <b>{t.deadLetters.error}</b>
        <p lang="en" class="sentence">
          {letter.detail}
        </p>
      </Note>
      {isForged && <p class="hint">{t.deadLetters.cannotReplay}</p>}
      <Facts
        facts={[
          [
            t.common.sale,
            letter.saleId === null ? (
              '–'
            ) : (
              <Id text={letter.saleId} to={pathOf({ screen: 'sale', saleId: letter.saleId })} />
            ),
          ],
          [
            t.common.batch,
            letter.batchId === null ? (
              '–'
            ) : (
              <Id
                text={letter.batchId}
                to={
                  pathOf({ screen: 'messages', tab: 'browse' }) +
                  queryOf({ way: 'key', key: letter.batchId, topic: letter.originTopic })
                }
              />
            ),
          ],
          [t.common.group, <code>{letter.group}</code>],
          [t.common.topic, <code>{letter.originTopic}</code>],
          [t.deadLetters.parkedAt, <Time at={letter.parkedAt} />],
          [t.common.attempts, f.number(letter.attempts)],
          [t.deadLetters.replaysBegun, f.number(letter.replays)],
          [t.deadLetters.note, letter.note === null ? '–' : <span lang="en">{letter.note}</span>],
          [t.deadLetters.messageId, <Id text={letter.messageId} />],
        ]}
      />
      <h3>{t.deadLetters.diff}</h3>
      <p class="hint">{t.deadLetters.diffHint}</p>
      {letter.orders === null ? (
        <p class="hint">{t.deadLetters.noBatch}</p>
      ) : (
        <OrdersBeside letter={letter} orders={letter.orders} />
      )}
      <h3>{t.deadLetters.body}</h3>
      <Code text={decoded} label={t.deadLetters.decoded} />
      {letter.batch !== null && (
        <details>
          <summary>{t.deadLetters.raw}</summary>
          <Code text={letter.body} label={t.deadLetters.raw} />
        </details>
      )}
      {action && <SingleAction action={action} letter={letter} onClose={() => setAction(null)} onDone={onChanged} />}
    </>
  );
}

/** Compares the batch with MySQL, one row per purchase. */
function OrdersBeside({
  letter,
  orders,
}: {
  readonly letter: DeadLetterWithOrders;
  readonly orders: readonly PurchaseOfBatch[];
}) {
  const { t, f } = useWords();
  const verdictOf = ({ order }: PurchaseOfBatch): { tone: Tone; text: string } => {
    if (order === null) return { tone: 'warn', text: t.deadLetters.verdict.missing };
    if (order.state === 'failed')
      return {
        tone: 'bad',
        text: `${t.deadLetters.verdict.failed}${order.reason === null ? '' : `: ${order.reason}`}`,
      };
    return order.batchId === letter.batchId
      ? { tone: 'ok', text: t.deadLetters.verdict.same }
      : { tone: 'bad', text: t.deadLetters.verdict.other };
  };
  const columns: readonly Column<PurchaseOfBatch>[] = [
    {
      name: `${t.common.user} / ${t.common.request}`,
      cell: ({ userId, requestId }) => (
        <div class="two-lines">
          <Id text={userId} />
          <Id
            text={requestId}
            to={pathOf({ screen: 'purchases', id: requestId }) + queryOf({ saleId: letter.saleId })}
          />
        </div>
      ),
      sort: ({ userId }) => userId,
    },
    {
      name: t.deadLetters.asked,
      isNumber: true,
      hides: 'phone',
      width: '92px',
      cell: ({ quantity }) => f.number(quantity),
    },
    {
      name: t.deadLetters.found,
      isNumber: true,
      width: '92px',
      phoneWidth: '64px',
      cell: ({ quantity, order }) =>
        order === null ? (
          <span class="faint">{t.deadLetters.noOrder}</span>
        ) : (
          <span class={order.quantity === quantity ? '' : 'bad-text'}>{f.number(order.quantity)}</span>
        ),
    },
    {
      name: t.common.state,
      width: '190px',
      phoneWidth: '176px',
      sort: (row) => verdictOf(row).text,
      cell: (row) => {
        const { tone, text } = verdictOf(row);
        return (
          <Badge tone={tone} title={row.order?.orderId}>
            {text}
          </Badge>
        );
      },
    },
  ];
  return (
    <Table
      label={t.deadLetters.diff}
      columns={columns}
      rows={orders}
      keyOf={({ userId, requestId }) => `${userId} ${requestId}`}
    />
  );
}

function SingleAction({
  action,
  letter,
  onClose,
  onDone,
}: {
  readonly action: BulkAction;
  readonly letter: DeadLetterWithOrders;
  readonly onClose: () => void;
  readonly onDone: () => void;
}) {
  const { api } = useApp();
  const { t, f } = useWords();
  const { deadLetterId } = letter;
  const run = async (): Promise<string> => {
    const { outcome } = await api.ask<{ outcome: keyof typeof t.deadLetters.outcomes }>(
      `/admin/v1/dead-letters/${deadLetterId}/${action}`,
      { method: 'POST' },
    );
    return t.deadLetters.outcomes[outcome];
  };
  const missing = letter.orders?.filter(({ order }) => order === null).length ?? null;
  return (
    <Confirm
      title={`${t.deadLetters[action]}: ${t.deadLetters.one(deadLetterId)}`}
      text={action === 'replay' ? t.deadLetters.replayText : t.deadLetters.discardText}
      verb={t.deadLetters[action]}
      isDangerous={action === 'discard'}
      {...(action === 'discard' && { typed: deadLetterId })}
      run={run}
      audit={{ subject: `dead_letter:${deadLetterId}` }}
      onClose={onClose}
      onDone={onDone}
    >
      <Facts
        facts={[
          [t.common.batch, <Id text={letter.batchId} />],
          [t.common.sale, letter.saleId ?? '–'],
          [t.messages.purchases, letter.orders === null ? '–' : f.number(letter.orders.length)],
          [t.deadLetters.noOrder, missing === null ? '–' : f.number(missing)],
        ]}
      />
    </Confirm>
  );
}
