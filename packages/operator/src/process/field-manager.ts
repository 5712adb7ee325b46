/**
 * Field managers of server-side apply (https://kubernetes.io/docs/reference/using-api/server-side-apply/).
 *
 * Publish keeps contour-plus' name: objects that contour-plus applied are then ours to update, and a switch between the two
 * programs writes nothing. Changing a name orphans the fields that were applied under the old one.
 */
export const FIELD_MANAGER = 'contour-plus'
/** Wildcard DNSEndpoints. */
export const WILDCARD_FIELD_MANAGER = 'seamark-wildcard'
/** The manager's configuration object. */
export const PROCESS_FIELD_MANAGER = 'seamark-process'
/** The ConfigMap in which publish stores its baseline. */
export const PUBLISH_STATE_FIELD_MANAGER = 'seamark-publish'
