import { z } from 'zod';
import { isoTime, limit, nextOf, queryWord, rowId } from '../../contract/fields.js';
import { notificationPage, readNotifications } from '../../contract/orders.js';
import { json } from '../answer.js';
import { defineRoute, jsonBody } from '../route.js';

/** Changes of the calling buyer's orders. */

export const listMyNotifications = defineRoute({
  method: 'get',
  path: '/v1/me/notifications',
  label: 'order',
  operationId: 'listMyNotifications',
  summary:
    'Lists what happened to the orders of the buyer in the last 90 days, newest first. Pass `next` as `after` to get the next page.',
  access: 'buyer',
  query: z.strictObject({ unread: queryWord(['true', 'false']).optional(), after: rowId.optional(), limit }),
  answers: { 200: { description: 'a page', schema: notificationPage } },
  async handle({ userId, query: { unread, after: before, limit: max } }, { notifications }) {
    const found = await notifications.list(userId, { onlyUnread: unread === 'true', before, max });
    return json(200, 'found', {
      notifications: found.map(({ atMs, ...one }) => ({ ...one, at: isoTime(atMs) })),
      next: nextOf(found, max, 'notificationId'),
    });
  },
});

export const readMyNotifications = defineRoute({
  method: 'post',
  path: '/v1/me/notifications/read',
  label: 'order',
  operationId: 'readMyNotifications',
  summary: 'Marks all notifications of the buyer up to this one as read. Safe to repeat.',
  access: 'buyer',
  body: jsonBody(z.strictObject({ upTo: rowId }).meta({ id: 'ReadUpTo' })),
  answers: { 200: { description: 'marked', schema: readNotifications } },
  async handle({ userId, body: { upTo } }, { notifications }) {
    return json(200, 'read', { read: await notifications.markRead(userId, upTo) });
  },
});
