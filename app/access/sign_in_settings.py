"""Settings of sign-ins to the dashboard through an OpenID Connect provider or a proxy."""

from importlib.util import find_spec
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings

from app.access.group_roles import Place, parse_groups, parse_place
from app.errors import SettingsError

PREFIX = "POLYMARGIN_"
_HEADER = r"^[A-Za-z0-9-]{1,100}$"


class SignInSettings(BaseSettings):
    """How people sign in with accounts that they have elsewhere, and which roles their groups give them."""

    openid_issuer: str = Field(
        default="",
        description="Issuer of an OpenID Connect provider, as its discovery document names it, for example "
        "`https://id.example.org/realms/staff`: people sign in to the dashboard with their accounts there. It "
        "requires `pip install 'polymargin[openid]'`. Default: none.",
    )
    openid_client_id: str = Field(default="", description="Client id of this service at the provider.")
    openid_client_secret: SecretStr | None = Field(
        default=None, description="Client secret of this service at the provider. Default: a public client."
    )
    openid_client_secret_file: Path | None = Field(
        default=None, description="File with the client secret, instead of `POLYMARGIN_OPENID_CLIENT_SECRET`."
    )
    openid_scopes: str = Field(
        default="openid profile email",
        description="Scopes that the service asks the provider for, separated by blanks; some providers send groups "
        "only for a scope `groups`.",
    )
    openid_groups_claim: str = Field(
        default="groups",
        description="Claim of the ID token, or else of the provider's user information, that lists a person's groups; "
        "dots lead into objects: `realm_access.roles`.",
    )
    openid_name_claim: str = Field(
        default="preferred_username",
        description="Claim from which a person's name is made at the first sign-in. Without it the service takes "
        "`email`, `name` or `sub`.",
    )
    public_url: str = Field(
        default="",
        description="Address at which browsers reach the dashboard, for example `https://polymargin.example.org`. The "
        "provider sends people back to `/sign-in/openid/callback` at this address only.",
    )
    group_roles: str = Field(
        default="",
        description="Roles of groups, separated by semicolons: `ml-admins=admin; annotators=clerk; "
        "legal=editor@legal`, the last in the workspace `legal`. The highest role of a person's groups counts; of "
        "equal roles, the first.",
    )
    default_role: str = Field(
        default="",
        description="Role of people without a group in `POLYMARGIN_GROUP_ROLES`, such as `viewer` or `viewer@legal`. "
        "Default: none, so they are refused.",
    )
    sign_in_proxies: str = Field(
        default="",
        description="Comma-separated addresses or networks of proxies that sign people in to the dashboard, such as "
        "oauth2-proxy: `127.0.0.1,10.0.0.7`. The service takes the user from their headers, and ignores these "
        "headers from all other addresses. List only proxies that remove them from what clients send. Default: none.",
    )
    proxy_user_header: str = Field(
        default="X-Forwarded-User",
        pattern=_HEADER,
        description="Header in which these proxies name the user. It must always be the same for one person.",
    )
    proxy_name_header: str = Field(
        default="X-Forwarded-Preferred-Username",
        pattern=_HEADER,
        description="Header from which a person's name is made at the first sign-in. Without it the service takes the "
        "user.",
    )
    proxy_groups_header: str = Field(
        default="X-Forwarded-Groups",
        pattern=_HEADER,
        description="Header in which these proxies list the user's groups, with commas between them.",
    )
    access_contact: str = Field(
        default="",
        description="Whom people should ask for access, for example `help@example.org`; the page that refuses them "
        "shows it.",
    )

    @field_validator("group_roles")
    @classmethod
    def _known_groups(cls, text: str) -> str:
        parse_groups(text)
        return text

    @field_validator("default_role")
    @classmethod
    def _known_role(cls, text: str) -> str:
        if text.strip():
            parse_place(text)
        return text.strip()

    @field_validator("sign_in_proxies")
    @classmethod
    def _known_proxies(cls, text: str) -> str:
        _networks(text)
        return text

    @field_validator("openid_issuer")
    @classmethod
    def _safe_issuer(cls, url: str) -> str:
        parts = urlsplit(url)
        local = parts.hostname in ("localhost", "127.0.0.1", "::1")
        if url and (
            not parts.hostname or parts.query or not (parts.scheme == "https" or (parts.scheme == "http" and local))
        ):
            raise ValueError("expected an https:// address without a query; http:// is allowed on loopback only")
        return url

    @field_validator("public_url")
    @classmethod
    def _origin(cls, url: str) -> str:
        parts = urlsplit(url)
        if url and (
            parts.scheme not in ("https", "http") or not parts.hostname or parts.path.strip("/") or parts.query
        ):
            raise ValueError("expected an address without a path, for example https://polymargin.example.org")
        return url.rstrip("/")

    @model_validator(mode="after")
    def _complete_proxies(self) -> Self:
        if self.sign_in_networks and not self.group_roles.strip() and not self.default_role:
            raise ValueError(f"{PREFIX}SIGN_IN_PROXIES also needs {PREFIX}GROUP_ROLES or {PREFIX}DEFAULT_ROLE")
        return self

    @model_validator(mode="after")
    def _complete_openid(self) -> Self:
        if not self.openid_issuer:
            return self
        lacking = [name for name in ("openid_client_id", "public_url") if not getattr(self, name)]
        if not self.group_roles.strip() and not self.default_role:
            lacking.append("group_roles")
        if lacking:
            names = ", ".join(f"{PREFIX}{name.upper()}" for name in lacking)
            raise ValueError(f"{PREFIX}OPENID_ISSUER also needs {names}")
        if self.openid_client_secret is not None and self.openid_client_secret_file is not None:
            raise ValueError(f"set either {PREFIX}OPENID_CLIENT_SECRET or {PREFIX}OPENID_CLIENT_SECRET_FILE")
        if find_spec("authlib") is None:
            raise ValueError(f"{PREFIX}OPENID_ISSUER needs the extra openid: pip install 'polymargin[openid]'")
        return self

    @property
    def openid_secret(self) -> str:
        """The client secret, from the environment or its file; empty for a public client.

        Raises
        ------
        SettingsError
            The file cannot be read.
        """
        if self.openid_client_secret is not None:
            return self.openid_client_secret.get_secret_value()
        if self.openid_client_secret_file is None:
            return ""
        try:
            return self.openid_client_secret_file.read_text().strip()
        except OSError as error:
            raise SettingsError(f"{PREFIX}OPENID_CLIENT_SECRET_FILE: {error.strerror}") from None

    @property
    def sign_in_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """Where the proxies are that sign people in."""
        return _networks(self.sign_in_proxies)

    @property
    def group_places(self) -> dict[str, Place]:
        """Roles and workspaces of groups."""
        return parse_groups(self.group_roles)

    @property
    def default_place(self) -> Place | None:
        """Role and workspace of people without any of these groups."""
        return parse_place(self.default_role) if self.default_role else None


def _networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(part, strict=False) for part in filter(None, map(str.strip, text.split(","))))
