/**
 * The names of the AWS SDK that are used, imported statically: a dynamic import of this module gives them in the bundle
 * too, where a dynamic import of a CommonJS package has no named exports.
 */
export {
  ChangeResourceRecordSetsCommand,
  ListHostedZonesCommand,
  ListResourceRecordSetsCommand,
  Route53Client,
} from '@aws-sdk/client-route-53'
