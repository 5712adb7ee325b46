/**
 * The used names of the AWS SDK, imported statically: a dynamic import of this module works in the bundle too, where a
 * dynamic import of a CommonJS package has no named exports.
 */
export {
  ChangeResourceRecordSetsCommand,
  ListHostedZonesCommand,
  ListResourceRecordSetsCommand,
  Route53Client,
} from '@aws-sdk/client-route-53'
