"""Secrets that can be recognised by themselves: the table of their forms, and finding them in programs. Pure.

A row is the kind, who issues it (its documentation describes the form), and a pattern. Lengths are minimal
ones: issuers make keys longer, logs cut them. The syntax imports this for its excerpts, so patterns are
compiled only for a word that may be a secret. Only what is recognised by itself counts there, and nothing
that looks like an example. Spec: 03 §16, 08 §17.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple


class Form(NamedTuple):
    kind: str
    issuer: str
    pattern: str


_W = "[A-Za-z0-9_-]"
_N = "[A-Za-z0-9]"

FORMS = tuple(
    Form(*row)
    for row in (
        # Models
        ("OpenAI, Anthropic, DeepSeek, OpenRouter key", "platform.openai.com", rf"sk-(?={_W}{{0,200}}[0-9A-Z]){_W}{{3,}}"),
        ("model service key, letters only", "platform.openai.com", rf"sk-{_W}{{20,}}"),
        ("Groq key", "console.groq.com", rf"gsk_{_N}{{8,}}"),
        ("xAI key", "x.ai", rf"xai-{_N}{{8,}}"),
        ("Hugging Face token", "huggingface.co", rf"(?:hf|api_org)_{_N}{{8,}}"),
        ("Replicate token", "replicate.com", rf"r8_{_N}{{8,}}"),
        ("Perplexity key", "perplexity.ai", rf"pplx-{_N}{{8,}}"),
        ("Cerebras key", "cerebras.ai", rf"csk-{_N}{{8,}}"),
        ("NVIDIA key", "build.nvidia.com", rf"nvapi-{_W}{{8,}}"),
        ("Fireworks, Together key", "fireworks.ai", rf"(?:fw_{_N}{{16,}}|tgp_v1_{_W}{{8,}})"),
        ("Voyage, Jina, Pinecone key", "pinecone.io", rf"(?:pa-{_W}{{32,}}|jina_{_W}{{8,}}|pcsk_{_W}{{8,}})"),
        ("Langfuse, LangSmith key", "langchain.com", rf"(?:[sp]k-lf-{_W}{{8,}}|lsv2_(?:pt|sk)_{_W}{{8,}})"),
        ("ElevenLabs key", "elevenlabs.io", r"sk_[0-9a-f]{32,}"),
        ("Tavily, Firecrawl, E2B key", "tavily.com", rf"(?:tvly-{_W}{{8,}}|fc-[0-9a-f]{{16,}}|e2b_[0-9a-f]{{16,}})"),
        ("Weights and Biases key", "wandb.ai", rf"wandb_v1_{_W}{{8,}}"),
        # Clouds
        ("AWS access key id", "docs.aws.amazon.com", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{8,}"),
        ("AWS session token", "docs.aws.amazon.com", r"(?:F[wQ]oG|IQoJ|AQoD)(?:ZXIvYXdz|b3JpZ2lu|YXdz)[A-Za-z0-9+/%]{16,}={0,2}"),
        ("AWS Bedrock key", "docs.aws.amazon.com", r"(?:ABSK|bedrock-api-key-)[A-Za-z0-9+/]{32,}={0,2}"),
        ("Google API key", "cloud.google.com", rf"AIza{_W}{{20,}}"),
        ("Google OAuth token", "developers.google.com", r"ya29\.[A-Za-z0-9._-]{8,}"),
        ("Google client secret", "developers.google.com", rf"GOCSPX-{_W}{{8,}}"),
        ("Google refresh token", "developers.google.com", rf"1//0{_W}{{16,}}"),
        ("Azure AD client secret", "learn.microsoft.com", r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{8,}"),
        ("Alibaba, Tencent key id", "alibabacloud.com", r"(?:LTAI[A-Za-z0-9]{12,}|AKID[A-Za-z0-9]{13,})"),
        ("Yandex token", "yandex.cloud", rf"(?:AQVN{_W}{{16,}}|t1\.[A-Za-z0-9_-]+={{0,2}}\.{_W}{{16,}})"),
        ("DigitalOcean token", "docs.digitalocean.com", r"do[opr]_v1_[0-9a-f]{8,}"),
        ("Cloudflare key", "developers.cloudflare.com", rf"(?:v1\.0-[0-9a-f]{{16,}}{_W}*|cfut_{_W}{{8,}})"),
        ("Heroku, Fly, Render key", "heroku.com", rf"(?:HRKU-{_W}{{8,}}|fo1_{_W}{{16,}}|fm[12]_{_W}{{16,}}|rnd_{_N}{{16,}})"),
        ("Vercel, Netlify token", "vercel.com", rf"(?:vercel_blob_rw_|vc[pkair]_|nf[pcob]_){_W}{{8,}}"),
        ("Databricks token", "docs.databricks.com", r"dapi[0-9a-f]{16,}(?:-\d)?"),
        ("PlanetScale, Supabase, Neon", "planetscale.com", r"(?:pscale_(?:tkn|pw|oauth)_|sbp_|sb_secret_|napi_)[\w.-]{8,}"),
        ("Pulumi, Prefect, Scalingo", "pulumi.com", rf"(?:pul-[0-9a-f]{{16,}}|pn[ub]_{_N}{{16,}}|tk-us-{_W}{{16,}})"),
        # Code and packages
        ("GitHub token", "docs.github.com", r"(?:gh[opsur]_[A-Za-z0-9]{4,}|github_pat_[A-Za-z0-9_]{4,})"),
        ("GitLab token", "docs.gitlab.com", rf"(?:gl(?:pat|oas|dt|rt|cbt|ptt|ft|imt|agent|soat|ffct)-{_W}{{8,}}|GR1348941{_W}{{8,}})"),
        ("Atlassian, Bitbucket token", "atlassian.com", r"(?:AT[AC]TT3|ATBB)[A-Za-z0-9_=-]{8,}"),
        ("npm token", "docs.npmjs.com", rf"npm_{_N}{{8,}}"),
        ("PyPI token", "pypi.org", rf"pypi-{_W}{{16,}}"),
        ("RubyGems, crates.io, NuGet", "guides.rubygems.org", rf"(?:rubygems_[0-9a-f]{{16,}}|cio{_N}{{32}}|oy2[a-z0-9]{{40,}})"),
        ("Clojars, Docker Hub", "docker.com", rf"(?:CLOJARS_[0-9a-z]{{16,}}|dckr_[po]at_{_W}{{8,}})"),
        ("Artifactory token", "jfrog.com", rf"(?:AKC[A-Za-z0-9]{{10,}}|cmVmdGtu{_N}{{16,}})"),
        ("CircleCI, Buildkite, Harness", "circleci.com", rf"(?:CCIPAT_|CCIPRJ_|bkua_|pat\.){_N}{{16,}}[\w.]*"),
        ("Sourcegraph, Sonar, Sentry", "sentry.io", r"(?:sgp_|slk_|sq[upa]_|sntry[su]_)[A-Za-z0-9_=+/-]{16,}"),
        ("Postman, Octopus", "postman.com", rf"(?:PMAK-{_W}{{16,}}|API-[A-Z0-9]{{25,}})"),
        ("Vault token", "developer.hashicorp.com", rf"(?:hv[sbr]\.{_W}{{8,}}|[sbr]\.(?=[A-Za-z]{{0,23}}[0-9]){_N}{{24,}})"),
        ("Terraform token", "developer.hashicorp.com", rf"{_N}{{8,}}\.atlasv1\.[A-Za-z0-9_=-]{{16,}}"),
        ("Doppler, 1Password, age", "doppler.com", rf"(?:dp\.[a-z]{{2,5}}\.{_N}{{16,}}|ops_eyJ{_W}{{16,}}|AGE-SECRET-KEY-1[A-Z0-9]{{16,}})"),
        ("OpenShift token", "redhat.com", rf"sha256~{_W}{{16,}}"),
        # Messages and mail
        ("Slack token", "api.slack.com", r"(?:xox[abceoprs](?:\.xox[bp])?-[A-Za-z0-9-]{4,}|xapp-[A-Za-z0-9-]{8,})"),
        ("Discord bot token", "discord.com", rf"[MNO]{_W}{{22,27}}\.{_W}{{6,7}}\.{_W}{{24,}}"),
        ("Telegram bot token", "core.telegram.org", rf"(?:bot)?\d{{6,11}}:AA{_W}{{30,}}"),
        ("Twilio key", "twilio.com", r"(?:SK|AC)[0-9a-f]{32}(?:[^0-9A-Za-z]{1,6}[0-9a-f]{32}(?![0-9A-Za-z]))?"),
        ("SendGrid key", "sendgrid.com", rf"SG\.{_W}{{8,}}\.{_W}{{8,}}"),
        ("Mailgun, Mailchimp, Brevo, Resend", "mailchimp.com", rf"(?:key-[0-9a-f]{{32}}|[0-9a-f]{{32}}-us\d{{1,2}}|xkeysib-{_W}{{16,}}|xsmtpsib-{_W}{{16,}}|re_{_N}{{8,}}_{_N}{{8,}})"),
        ("Webhook signing secret", "docs.stripe.com", r"whsec_[A-Za-z0-9+/]{8,}={0,2}"),
        # Money
        ("Stripe, Clerk key", "docs.stripe.com", r"[spr]k_(?:live|test|prod)_[A-Za-z0-9]{8,}"),
        ("Square token", "developer.squareup.com", rf"(?:sq0[a-z]{{3}}-{_W}{{16,}}|EAAA{_W}{{40,}})"),
        ("Shopify token", "shopify.dev", r"shp(?:at|ca|pa|ss|ua)_[0-9a-fA-F]{16,}"),
        ("PayPal, Braintree token", "braintreepayments.com", r"access_token\$(?:production|sandbox)\$[0-9a-z]{8,}\$[0-9a-f]{16,}"),
        ("Plaid, Flutterwave, Razorpay", "plaid.com", rf"(?:access-(?:sandbox|development|production)-[0-9a-f-]{{20,}}|FLWSECK(?:_TEST)?-{_W}{{16,}}|rzp_(?:live|test)_{_N}{{8,}})"),
        ("Shippo, EasyPost, Duffel, Lob", "goshippo.com", r"(?:shippo_(?:live|test)_|duffel_(?:live|test)_|EZ[AT]K|(?:live|test)_pub_)[A-Za-z0-9_=-]{16,}"),
        # Work and data
        ("Notion token", "developers.notion.com", rf"(?:ntn_{_N}{{16,}}|secret_{_N}{{32,}})"),
        ("Linear, Figma, Airtable", "linear.app", rf"(?:lin_(?:api|oauth)_{_N}{{16,}}|figd_{_W}{{16,}}|pat{_N}{{14}}\.[0-9a-f]{{32,}})"),
        ("Dropbox, HubSpot, Contentful", "dropbox.com", rf"(?:sl\.(?:u\.)?{_W}{{40,}}|pat-[a-z]{{2}}\d-[0-9a-f-]{{20,}}|CFPAT-{_W}{{16,}})"),
        ("Grafana token", "grafana.com", r"gl(?:c|sa)_[A-Za-z0-9+/_=]{16,}"),
        ("New Relic key", "newrelic.com", r"(?:NRAK|NRJS|NRII|NRBR|NRRA)-[A-Za-z0-9-]{8,}"),
        ("Dynatrace token", "dynatrace.com", r"dt0[a-z]\d{2}\.[A-Z0-9]{16,}\.[A-Z0-9]{16,}"),
        ("PostHog, Tailscale, Mapbox", "tailscale.com", rf"(?:ph[cxs]_{_N}{{16,}}|tskey-[A-Za-z0-9-]{{12,}}|[sp]k\.eyJ[\w.-]{{16,}})"),
        ("Facebook, Instagram token", "developers.facebook.com", r"(?:EAA|IGQ)[A-Za-z0-9]{32,}"),
        ("Twitter bearer token", "developer.x.com", r"A{20,}[A-Za-z0-9%]{16,}"),
        ("Apify, Typeform, ReadMe, Infracost", "apify.com", rf"(?:apify_api_|tfp_|rdme_|ico-|aio_){_W}{{16,}}"),
        # Tokens of standards
        ("JSON web token", "RFC 7519", rf"eyJ{_W}{{8,}}\.(?:eyJ)?{_W}{{8,}}(?:\.{_W}*)*"),
        ("password hash", "man 5 crypt", r"\$(?:2[abxy]|apr1|1|5|6|7|y|argon2(?:id|i|d)|pbkdf2[\w-]*)\$[A-Za-z0-9./$=,+-]{16,}"),
        ("private key, DER as base64", "RFC 5958", r"MI(?:I[BCEJ]|G[EH]|HC?)[A-Za-z0-9+/]{60,}={0,2}"),
        ("PEM as base64", "RFC 7468", r"(?:LS0tLS1CRUdJTi|0tLS0tQkVHSU4g|tLS0tLUJFR0lOI)[A-Za-z0-9+/_-]{16,}={0,2}"),
    )
)  # fmt: skip

#: Addresses that let anybody who knows them write.
WEBHOOKS = tuple(
    Form(*row)
    for row in (
        ("Slack webhook", "api.slack.com", r"hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/"),
        ("Discord webhook", "discord.com", r"(?:[a-z]+\.)?discord(?:app)?\.com/api/(?:v\d+/)?webhooks/"),
        ("Teams webhook", "learn.microsoft.com", r"(?:[\w-]+\.webhook|outlook)\.office\.com/webhook(?:b2)?/"),
        ("Power Automate", "learn.microsoft.com", r"[\w.-]+\.logic\.azure\.com(?::443)?/workflows/"),
        ("Google Chat webhook", "developers.google.com", r"chat\.googleapis\.com/v1/spaces/"),
        ("Zapier webhook", "zapier.com", r"hooks\.zapier\.com/hooks/"),
        ("Make webhook", "make.com", r"hook\.[a-z0-9.]+\.(?:make|integromat)\.com/"),
        ("IFTTT webhook", "ifttt.com", r"maker\.ifttt\.com/(?:use|trigger)/"),
        ("DingTalk, Feishu, WeCom", "open.feishu.cn", r"(?:oapi\.dingtalk\.com/robot/send\?|open\.(?:feishu\.cn|larksuite\.com)/open-apis/bot/|qyapi\.weixin\.qq\.com/cgi-bin/webhook/)"),
        ("Mattermost, Rocket.Chat", "docs.mattermost.com", r"[\w.-]+(?::\d+)?/hooks/(?=[A-Za-z0-9]{16})"),
    )
)  # fmt: skip


#: Shorter ones are hard to tell from names.
_CANDIDATE = re.compile(r"[A-Za-z0-9_.:/+=$~-]{16,}")
#: Different characters; data and rulers have fewer.
_FEWEST = 10
_ARMOUR = "-----BEGIN "
_WHOLE_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]+-----|\Z)", re.DOTALL
)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----\s+\S{20,}")
#: What people write where a secret would be.
_EXAMPLE = re.compile(
    r"example|sample|dummy|fake|test|mock|your|secret|token|xxx|abc|123|redacted|\.\.\.|key-", re.IGNORECASE
)


def kind_of_secret(text: str) -> str | None:
    """Return what kind of a secret a string holds, None if it holds none."""
    if _ARMOUR in text:
        return "private key" if _PRIVATE_KEY.search(text) else None
    found = (_form_of(word) for word in _CANDIDATE.findall(text))
    return next(filter(None, found), None)


#: What a key may stand behind or before: ``KEY=sk-…``.
_SEPARATOR = re.compile("[=:/]+")


def secrets_in(text: str) -> list[str]:
    """Return the keys in a text that are recognised by themselves, and the private keys in it.

    What looks like an example counts, too: it may be one that isn't.
    """
    found = [each[0] for each in _WHOLE_PRIVATE_KEY.finditer(text)] if _ARMOUR in text else []
    for word in _CANDIDATE.findall(text):
        parts = [word, *_SEPARATOR.split(word)] if _SEPARATOR.search(word) else [word]
        found += [part for part in parts if _key_kind(part)]
    return found


def hidden(line: str) -> str:
    """Return a line of a program with ``*`` in the place of each character of a secret."""
    return _CANDIDATE.sub(lambda found: "*" * len(found[0]) if _form_of(found[0]) else found[0], line)


def _form_of(word: str) -> str | None:
    """Return the kind of key that a word is."""
    return None if _EXAMPLE.search(word) else _key_kind(word)


@cache
def _any_form() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{form.pattern})" for form in FORMS))


def _key_kind(word: str) -> str | None:
    if len(set(word)) < _FEWEST or not any(map(str.isdigit, word)) or not _any_form().fullmatch(word):
        return None
    return next((form.kind for form in FORMS if re.fullmatch(form.pattern, word)), None)
